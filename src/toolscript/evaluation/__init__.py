"""JUDGE: how good and how fast is it, measured?"""
