"""From numbers to something a person likes to read.

Renderers decide nothing; they compute no number but shares of the counts they are given and the intervals of these.
"""
