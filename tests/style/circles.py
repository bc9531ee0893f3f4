"""tests/style/circles.py - files that call each other in a circle.

Who reads a file wants to read what it calls, and be done. So calls between the files of a folder go
one way, too: a source with its header is a place, and a place calls another if its code names a
function that the other alone defines. What is called back is asked for as an argument, or stands in
a file of its own.
"""
import os
import re

from tree import room_of, without_comments

# Where a circle is the matter itself: paths that begin so, and why.
KNOWN = {
    'models/cluster-': 'a cluster is like another, which is read in the same way',
    'models/traced/': 'an argument may be a list of arguments',
}

_DEFINES = re.compile(r'^(?!static\b|typedef\b|extern\b|else\b|return\b)[A-Za-z_][\w \t*]*?[ *]([a-z]\w*_\w+)\('
                      r'[^;{}]*\)\s*\{', re.MULTILINE)
_OWN = re.compile(r'^static\b[^;={}]*?\b([a-z]\w*_\w+)\(', re.MULTILINE)
_NAMES = re.compile(r'\b[a-z]\w*_\w+\b')


def _place(path):
    return os.path.splitext(path)[0]


def _calls(tree):
    """{place: {place that it calls: a function}}"""
    texts = {path: without_comments(tree.text(path) or '', False) for path in tree.c_paths()
             if path.endswith(('.c', '.cu')) and room_of(path) != 'tests'}
    homes = {}
    for path, text in texts.items():
        for match in _DEFINES.finditer(text):
            homes.setdefault(match.group(1), set()).add(_place(path))
    calls = {}
    for path, text in texts.items():
        to = calls.setdefault(_place(path), {})
        for name in sorted(set(_NAMES.findall(text)) - set(_OWN.findall(text))):
            home = homes.get(name, ())
            if len(home) == 1 and _place(path) not in home:
                to.setdefault(next(iter(home)), name)
    return calls


def _circles(calls):
    """Lists of places, each of which can be come to from each other one: Tarjan's algorithm."""
    found, low, order, on, circles = {}, {}, [], set(), []

    def visit(place):
        found[place] = low[place] = len(found)
        order.append(place)
        on.add(place)
        stack = [(place, iter(sorted(calls.get(place, ()))))]
        while stack:
            at, rest = stack[-1]
            for other in rest:
                if other not in found:
                    found[other] = low[other] = len(found)
                    order.append(other)
                    on.add(other)
                    stack.append((other, iter(sorted(calls.get(other, ())))))
                    break
                if other in on:
                    low[at] = min(low[at], found[other])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[at])
                if low[at] == found[at]:
                    circle = order[order.index(at):]
                    del order[order.index(at):]
                    on.difference_update(circle)
                    circles.append(sorted(circle))

    for place in sorted(calls):
        if place not in found:
            visit(place)
    return [circle for circle in circles if len(circle) > 1]


def _path(tree, place):
    return place + ('.c' if os.path.exists(tree.full(place + '.c')) else '.cu')


def check_circles(tree):
    complaints = []
    calls = _calls(tree)
    seen = set()
    for circle in _circles(calls):
        known = [start for start in KNOWN if all(place.startswith(start) for place in circle)]
        seen.update(known)
        for place in circle if not known else ():
            names = sorted(calls[place][other] for other in calls[place] if other in circle)
            complaints.append('%s:1: calls %s, of a file that calls back'
                              % (_path(tree, place), ', '.join(names)))
    for start in KNOWN:
        if start not in seen and any(path.startswith(start) for path in tree.paths):
            complaints.append('tests/style/circles.py:1: %s has no circle any more' % start)
    return complaints
