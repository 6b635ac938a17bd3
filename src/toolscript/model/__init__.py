"""WORDS: frozen values without I/O. What are we talking about?"""
