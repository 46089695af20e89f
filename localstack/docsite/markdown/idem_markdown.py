"""Lets Python-Markdown, which MkDocs renders with, read what GitHub reads.

Python-Markdown wants an empty line before a list or a table that follows a paragraph, and four spaces before what belongs
to an item of a list. GitHub wants neither, and the documents are read there too.
"""

import re

from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

ITEM = re.compile(r"(?:[-*]|\d+\.) ")
ROW = re.compile(r"\|")
FENCE = "\x02"  # how Python-Markdown marks a block of code that is taken out of the text


class LikeGitHub(Preprocessor):
    def run(self, lines):
        out = []
        kind = ""  # of the block that the last line belongs to: "", "item", "row", "fence" or "text"
        listed = False  # whether indented lines belong to an item
        for line in lines:
            if not line.strip():
                kind = ""
                out.append(line)
                continue
            if line.startswith(FENCE):
                now, listed = "fence", False
            elif ITEM.match(line):
                now, listed = "item", True
            elif ROW.match(line):
                now, listed = "row", False
            elif line.startswith(" "):
                now = kind or "text"
                if listed:
                    line = re.sub(r"^ {2,3}(?=\S)", "    ", line)
            else:
                now = kind if kind == "item" else "text"  # a line of an item may begin in the first column
                listed = listed and now == "item"
            if kind and now != kind:
                out.append("")
            kind = now
            out.append(line)
        return out


class IdemMarkdown(Extension):
    def extendMarkdown(self, md):
        md.preprocessors.register(LikeGitHub(md), "like_github", 20)  # after blocks of code are taken out (25)


def makeExtension(**arguments):
    return IdemMarkdown(**arguments)
