"""WRITE: from what sources say to a catalog and an index that agree. How does it get in?"""
