#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check a picture of a fabric: it is XML, and shows what JSON says.

    fabric_picture.py PICTURE JSON [CHECK...]

CHECK is "way" (a way is drawn), "down=N" (so many links are down), "hot" (a
table of busy ports is there), or "name=TEXT" (a node's name, as it is)."""
import json
import re
import sys
import xml.etree.ElementTree as xml

SVG = '{http://www.w3.org/2000/svg}'
XHTML = '{http://www.w3.org/1999/xhtml}'


def must(holds, what):
    if not holds:
        sys.exit(what)


def classed(root, name):
    return [e for e in root.iter() if name in e.get('class', '').split()]


picture = open(sys.argv[1], encoding='utf-8').read()
root = xml.fromstring(picture)
nodes = json.load(open(sys.argv[2], encoding='utf-8'))['nodes']
links = sum(1 if 'remote' in p else .5 for n in nodes for p in n['ports'])

must(root.tag in (SVG + 'svg', XHTML + 'html'), f'it is a {root.tag}')
without = re.sub(r'xmlns="[^"]*"', '', picture)
must(not re.search(r'https?:|url\(|src=|href=|<script|@import', without),
     'it needs something from elsewhere')
drawn = classed(root, 'node')
must(len(drawn) == len(nodes), f'{len(drawn)} nodes of {len(nodes)}')
must(sorted(''.join(e.find(SVG + 'text').itertext()) for e in drawn) ==
     sorted(re.sub('[\x00-\x1f\x7f]', '\ufffd', n['name']) for n in nodes),
     'the names differ')
lines = classed(root, 'link')
must(len(lines) == links, f'{len(lines)} links of {links}')
for kind in ('switch', 'ca'):
    must(len([e for e in drawn if kind in e.get('class').split()]) ==
         len([n for n in nodes if n['kind'] == kind]), f'kind {kind}')
for state in ('down', 'init', 'active'):
    have = len(classed(root, state))
    want = sum(p['state'] == state for n in nodes for p in n['ports']) / 2
    must(have == want, f'{have} links {state}, {want} wanted')
places = {e.get('transform') for e in drawn}
must(len(places) == len(drawn), 'nodes lie upon each other')
box = [float(v) for v in next(root.iter(SVG + 'svg')).get('viewBox').split()]
for place in places:
    x, y = (float(v) for v in re.findall(r'-?[\d.]+', place))
    must(0 <= x <= box[2] and 0 <= y <= box[3], f'{place} is out of {box}')
for check in sys.argv[3:]:
    word, _, value = check.partition('=')
    if word == 'way':
        must(len([e for e in lines if 'way' in e.get('class').split()]) > 0,
             'no way is drawn')
    elif word == 'down':
        must(len(classed(root, 'down')) == int(value), 'links that are down')
    elif word == 'hot':
        must(any(e.get('id') == 'hot' for e in root.iter()), 'no busy ports')
    elif word == 'name':
        must(any(n['name'] == value for n in nodes), f'no {value}')
