-- SPDX-License-Identifier: BSD-2-Clause
-- Link packets of InfiniBand (IBA 7.9.4) in Wireshark, whose own dissector takes
-- them for malformed:  tshark -X lua_script:ib_link.lua -r FILE
-- They are ERF records of type 25, as `verbena fabric capture --flow` writes them.

local p = Proto("ib_link", "InfiniBand Link Packet")
local ops = { [0] = "Normal", [1] = "Init" }
local f = {
	op = ProtoField.uint8("ib_link.op", "Operand", base.DEC, ops, 0x70),
	wide = ProtoField.bool("ib_link.wide", "24-bit counts", 8, nil, 0x80),
	vl = ProtoField.uint8("ib_link.vl", "Virtual Lane", base.DEC),
	fctbs = ProtoField.uint32("ib_link.fctbs",
		"Flow Control Total Blocks Sent", base.DEC),
	fccl = ProtoField.uint32("ib_link.fccl", "Flow Control Credit Limit",
		base.DEC),
	crc = ProtoField.uint16("ib_link.lpcrc", "Link Packet CRC", base.HEX),
}
p.fields = { f.op, f.wide, f.vl, f.fctbs, f.fccl, f.crc }
local short = ProtoExpert.new("ib_link.short", "The link packet is too short",
	expert.group.MALFORMED, expert.severity.ERROR)
p.experts = { short }

-- Where the fields are in the two forms. The form with 24 bits is Verbena's.
local function fields_of(buf)
	if bit.band(buf(0, 1):uint(), 0x80) ~= 0 then
		return 10, buf(0, 1), bit.band(buf(0, 1):uint(), 15), buf(1, 3),
			buf(1, 3):uint(), buf(4, 3), buf(4, 3):uint()
	end
	return 6, buf(2, 1), bit.rshift(buf(2, 1):uint(), 4), buf(0, 2),
		bit.band(buf(0, 2):uint(), 0xfff), buf(2, 2),
		bit.band(buf(2, 2):uint(), 0xfff)
end

function p.dissector(buf, pinfo, tree)
	pinfo.cols.protocol = "InfiniBand Link"
	local top = tree:add(p, buf())
	if buf:len() < 6 or (bit.band(buf(0, 1):uint(), 0x80) ~= 0
			and buf:len() < 10) then
		top:add_proto_expert_info(short)
		return
	end
	local len, vl_at, vl, sent_at, sent, limit_at, limit = fields_of(buf)
	local op = bit.band(bit.rshift(buf(0, 1):uint(), 4), 7)
	top:add(f.wide, buf(0, 1))
	top:add(f.op, buf(0, 1))
	top:add(f.vl, vl_at, vl)
	top:add(f.fctbs, sent_at, sent)
	top:add(f.fccl, limit_at, limit)
	top:add_le(f.crc, buf(len - 2, 2))
	pinfo.cols.info = string.format("FC %s VL=%d FCTBS=%d FCCL=%d",
		ops[op] or op, vl, sent, limit)
end

DissectorTable.get("erf.types.type"):add(25, p)
