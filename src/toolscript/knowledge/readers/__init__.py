"""Readers: files of every kind as blocks of text, read in a process of their own."""
