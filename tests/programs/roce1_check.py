#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Reads a capture (pcap, Ethernet) and checks every RoCEv1 frame in it field by
field, by code that is not the adapter's: Ethernet, VLAN tag, GRH, BTH, extended
headers, pad and ICRC (IBA chapters 5, 8 and 9, Annex A16).

    roce1_check.py FILE [--vlan NUMBER --priority P,P...] [--hosts MAC=GID,...]
                   [OPERATION...]

Exit status 0: there were frames, all are right, and each OPERATION was among
them. --vlan: each frame has this tag, with one of the priorities. --hosts: the
MAC addresses and GIDs of unicast frames belong together as said.
"""
import argparse
import collections
import ipaddress
import struct
import sys
import zlib

ETHERTYPE = 0x8915
VLAN = 0x8100
LOCAL = bytes([2, 0])  # the source address of frames on a loopback interface

RELIABLE = ["SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM",
            "SEND_ONLY", "SEND_ONLY_IMM", "WRITE_FIRST", "WRITE_MIDDLE",
            "WRITE_LAST", "WRITE_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM",
            "READ_REQUEST", "READ_RESPONSE_FIRST", "READ_RESPONSE_MIDDLE",
            "READ_RESPONSE_LAST", "READ_RESPONSE_ONLY", "ACKNOWLEDGE",
            "ATOMIC_ACKNOWLEDGE", "CMP_SWAP", "FETCH_ADD", None,
            "SEND_LAST_INV", "SEND_ONLY_INV"]
CLASSES = {0: "RC", 1: "UC", 3: "UD", 5: "XRC"}

# Extended headers: their lengths in bytes, and which operations have them.
LENGTHS = {"DETH": 8, "XRCETH": 4, "RETH": 16, "AETH": 4, "ATOMIC": 28,
           "ATOMIC_ACK": 8, "IMM": 4, "IETH": 4}
HEADERS = {
    "WRITE_FIRST": ["RETH"], "WRITE_ONLY": ["RETH"],
    "WRITE_ONLY_IMM": ["RETH", "IMM"], "READ_REQUEST": ["RETH"],
    "SEND_LAST_IMM": ["IMM"], "SEND_ONLY_IMM": ["IMM"],
    "WRITE_LAST_IMM": ["IMM"], "READ_RESPONSE_FIRST": ["AETH"],
    "READ_RESPONSE_LAST": ["AETH"], "READ_RESPONSE_ONLY": ["AETH"],
    "ACKNOWLEDGE": ["AETH"], "ATOMIC_ACKNOWLEDGE": ["AETH", "ATOMIC_ACK"],
    "CMP_SWAP": ["ATOMIC"], "FETCH_ADD": ["ATOMIC"],
    "SEND_LAST_INV": ["IETH"], "SEND_ONLY_INV": ["IETH"],
}
WITHOUT_PAYLOAD = {"READ_REQUEST", "ACKNOWLEDGE", "ATOMIC_ACKNOWLEDGE",
                   "CMP_SWAP", "FETCH_ADD"}
FULL = {"SEND_FIRST", "SEND_MIDDLE", "WRITE_FIRST", "WRITE_MIDDLE",
        "READ_RESPONSE_FIRST", "READ_RESPONSE_MIDDLE"}
RESPONSES = {name for name in RELIABLE if name and
             ("RESPONSE" in name or "ACKNOWLEDGE" in name)}
# Verbena's own: a receiver of UC and UD says what it has heard.
OWN = 0xc0
# And a reserved bit of the BTH: the sender can repeat selectively. A NAK with
# it says behind its AETH which packets the receiver has.
SELECTIVE = 0x01000000


class Wrong(Exception):
    pass


def must(truth, what):
    if not truth:
        raise Wrong(what)


def operation(opcode):
    """The name of an opcode, with its class; and the name without it."""
    kind = CLASSES.get(opcode >> 5)
    number = opcode & 31
    if opcode == OWN:
        return "OWN_HEARD", None
    must(kind, "opcode 0x%02x" % opcode)
    must(number < len(RELIABLE) and RELIABLE[number], "opcode 0x%02x" % opcode)
    name = RELIABLE[number]
    if kind == "UC":
        must(number <= 11, "UC has no " + name)
    if kind == "UD":
        must(name in ("SEND_ONLY", "SEND_ONLY_IMM"), "UD has no " + name)
    return kind + "_" + name, name


def extended(full, name):
    """The extended headers of a packet, in their order."""
    if full == "OWN_HEARD":
        return None
    kind = full.split("_")[0]
    headers = list(HEADERS.get(name, []))
    if kind == "UD":
        headers.insert(0, "DETH")
    if kind == "XRC" and name not in RESPONSES:
        headers.insert(0, "XRCETH")
    return headers


def check_icrc(grh, packet):
    masked = bytearray(b"\xff" * 8 + grh + packet[:-4])
    masked[8] |= 0x0f  # traffic class
    masked[9:12] = b"\xff" * 3  # traffic class, flow label
    masked[15] = 0xff  # hop limit
    masked[8 + 40 + 4] = 0xff  # FECN, BECN
    stored, = struct.unpack("<I", packet[-4:])
    must(stored == zlib.crc32(masked), "ICRC %08x, must be %08x" %
         (stored, zlib.crc32(masked)))


def group_mac(gid):
    if gid[:12] == bytes(10) + b"\xff\xff":
        return bytes([1, 0, 0x5e, gid[13] & 0x7f]) + gid[14:]
    return b"\x33\x33" + gid[12:]


def is_group(gid):
    return gid[0] == 0xff or (gid[:12] == bytes(10) + b"\xff\xff" and
                              gid[12] >> 4 == 14)


def check_ethernet(frame, options, seen):
    """The MAC addresses, and the bytes behind the EtherType."""
    dst, src = frame[:6], frame[6:12]
    kind, = struct.unpack(">H", frame[12:14])
    rest = frame[14:]
    if kind == VLAN:
        tci, kind = struct.unpack(">HH", rest[:4])
        rest = rest[4:]
        must(options.vlan is not None, "a VLAN tag")
        must(tci & 0xfff == options.vlan, "VLAN %d" % (tci & 0xfff))
        must(not tci & 0x1000, "DEI")
        must(tci >> 13 in options.priority, "priority %d" % (tci >> 13))
        seen["priority %d" % (tci >> 13)] += 1
    else:
        must(options.vlan is None, "no VLAN tag")
    must(kind == ETHERTYPE, "EtherType 0x%04x" % kind)
    must(not src[0] & 1, "a group is the source")
    return dst, src, rest


def check_grh(grh, dst, src, options):
    word, length, following, hops = struct.unpack(">IHBB", grh[:8])
    sgid, dgid = grh[8:24], grh[24:40]
    must(word >> 28 == 6, "IPVer %d" % (word >> 28))
    must(following == 0x1b, "NxtHdr 0x%02x" % following)
    must(hops > 0, "hop limit 0")
    must(not is_group(sgid), "a group is the source GID")
    must(is_group(dgid) == bool(dst[0] & 1), "GID and MAC disagree on a group")
    if is_group(dgid):
        must(dst == group_mac(dgid), "the group's MAC address is " + dst.hex())
    if options.hosts and src[:2] != LOCAL:
        must(options.hosts.get(sgid) == src, "source %s is not %s" %
             (src.hex(), ipaddress.ip_address(sgid)))
        if not is_group(dgid):
            must(options.hosts.get(dgid) == dst, "destination %s is not %s" %
                 (dst.hex(), ipaddress.ip_address(dgid)))
    return length, is_group(dgid)


def check_bth(packet, group):
    opcode, flags, pkey, qpn, psn = struct.unpack(">BBHII", packet[:12])
    full, name = operation(opcode)
    pad = flags >> 4 & 3
    must(flags & 0x0f == 0, "TVer %d" % (flags & 0x0f))
    must(pkey & 0x7fff == 0x7fff, "P_Key 0x%04x" % pkey)
    must((qpn & 0xffffff == 0xffffff) == group, "QPN 0x%x" % (qpn & 0xffffff))
    selective = bool(psn & SELECTIVE)
    must(not psn & 0x7f000000 & ~SELECTIVE, "reserved bits beside AckReq")
    headers = extended(full, name)
    if headers is None:
        return full
    at = 12 + sum(LENGTHS[h] for h in headers)
    must(len(packet) >= at + pad + 4, "cut short in its headers")
    payload = len(packet) - at - pad - 4
    if name in WITHOUT_PAYLOAD:
        must(payload == 0 and pad == 0 or
             selective and name == "ACKNOWLEDGE", "a payload")
    if name in FULL:
        must(payload in (256, 512, 1024, 2048, 4096) and pad == 0,
             "%d bytes in a packet that is not the last" % payload)
    must(payload <= 4096, "%d bytes of payload" % payload)
    must(packet[-4 - pad:-4] == bytes(pad), "pad that is not zero")
    return full


def check_frame(frame, options, seen):
    dst, src, rest = check_ethernet(frame, options, seen)
    must(len(rest) >= 40 + 16, "cut short")
    grh, packet = rest[:40], rest[40:]
    length, group = check_grh(grh, dst, src, options)
    must(length % 4 == 0, "PayLen %d" % length)
    must(16 <= length <= len(packet), "PayLen %d of %d" %
         (length, len(packet)))
    must(not any(packet[length:]), "what pads the frame is not zero")
    packet = packet[:length]
    full = check_bth(packet, group)
    check_icrc(grh, packet)
    seen[full + ("_GROUP" if group else "")] += 1


def frames(path):
    with open(path, "rb") as f:
        magic, _, _, _, _, _, link = struct.unpack("<IHHIIII", f.read(24))
        if magic not in (0xa1b2c3d4, 0xa1b23c4d) or link != 1:
            sys.exit("roce1_check: no Ethernet pcap file")
        while head := f.read(16):
            _, _, captured, whole = struct.unpack("<IIII", head)
            yield f.read(captured), whole


def read_hosts(text):
    pairs = [pair.split("=") for pair in text.split(",")] if text else []
    hosts = {}
    for mac, address in pairs:
        ip = ipaddress.ip_address(address)
        gid = ip.packed if ip.version == 6 else \
            bytes(10) + b"\xff\xff" + ip.packed
        hosts[gid] = bytes.fromhex(mac.replace(":", ""))
    return hosts


def read_options():
    p = argparse.ArgumentParser()
    p.add_argument("file")
    p.add_argument("--vlan", type=int)
    p.add_argument("--priority", default="0")
    p.add_argument("--hosts", default="")
    p.add_argument("operation", nargs="*")
    o = p.parse_intermixed_args()
    o.priority = {int(n) for n in o.priority.split(",")}
    o.hosts = read_hosts(o.hosts)
    return o


def main():
    options = read_options()
    seen = collections.Counter()
    right = wrong = 0
    for number, (frame, whole) in enumerate(frames(options.file), 1):
        try:
            must(len(frame) == whole, "the capture has a part of it only")
            check_frame(frame, options, seen)
            right += 1
        except Wrong as why:
            wrong += 1
            if wrong <= 10:
                print("frame %d: %s" % (number, why))
    for name in sorted(seen):
        print(name, seen[name])
    missing = [name for name in options.operation if not seen[name]]
    if missing:
        print("not seen:", *missing)
    print("%d right, %d wrong" % (right, wrong))
    sys.exit(bool(wrong or not right or missing))


main()
