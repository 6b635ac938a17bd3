"""TECHNOLOGY: one file or folder per library; the only code that knows it. How is it done?"""
