#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Advertise this host as a default router of IPv6, once, with its link-layer
address: gateway_router.py INTERFACE"""
import socket
import struct
import sys

interface = sys.argv[1]
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind((interface, 0))
mac = raw.getsockname()[4]
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
index = socket.if_nametoindex(interface)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
# The kernel writes the checksum, and takes the link-local address.
advert = struct.pack('!BBHBBHII', 134, 0, 0, 64, 0, 600, 0, 0)
s.sendto(advert + b'\x01\x01' + mac, ('ff02::1', 0, 0, index))
