"""tests/style/pages.py - what a page links to is there: a heading, a file beside it, another page by its name."""
import os
import re

from tree import matches

_LINK = re.compile(r'\]\(([^)\s]+)\)')
_NAMED = re.compile(r'`([\w./-]+\.md)`')


def headings(text):
    """What a link within a page may name: its headings, as GitHub writes them."""
    found = re.findall(r'^#+ (.*)$', text, re.MULTILINE)
    return {re.sub(r'[^\w -]', '', heading.lower()).replace(' ', '-') for heading in found}


def _is_there(tree, page, target):
    """Of a link: `#heading`, `file` or `page#heading`, beside the page that it stands in."""
    name, _, heading = target.partition('#')
    path = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
    if not os.path.exists(tree.full(path)):
        return False
    return not heading or heading in headings(tree.text(path) or '')


def check_links(tree):
    """A page in backticks is named from the root or from the folder that it is named in."""
    complaints = []
    for page in tree.paths:
        text = tree.text(page) if page.endswith('.md') else None
        if text is None:
            continue
        for line, match in matches(text, _LINK):
            target = match.group(1)
            if '://' not in target and not _is_there(tree, page, target):
                complaints.append('%s:%d: links to %s, which is not there' % (page, line, target))
        for line, match in matches(text, _NAMED):
            name = match.group(1)
            if name not in tree.paths and not _is_there(tree, page, name):
                complaints.append('%s:%d: names %s, which is not there' % (page, line, name))
    return complaints
