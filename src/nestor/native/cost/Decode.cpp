#include "Decode.h"

#include <algorithm>
#include <cstring>

namespace nestor {
namespace {

// The parts of one instruction's bytes; what they mean is the template's to say.
struct Layout {
  uint64_t key;
  int length;       // without immediates
  int reg, rm, vvvv, opcodeRegister, base, index, scale, mask;
  int64_t displacement;
  bool memory, rip, rex, segment, byteDisplacement;
};

bool hasModRM(int map, int opcode) {
  if (map == 0) {
    if (opcode < 0x40) return (opcode & 7) < 4;
    if (opcode >= 0x80 && opcode <= 0x8F) return true;
    if (opcode >= 0xD8 && opcode <= 0xDF) return true;
    switch (opcode) {
    case 0x63: case 0x69: case 0x6B: case 0xC0: case 0xC1: case 0xC6: case 0xC7:
    case 0xD0: case 0xD1: case 0xD2: case 0xD3: case 0xF6: case 0xF7: case 0xFE: case 0xFF:
      return true;
    }
    return false;
  }
  if (map == 1) {
    if ((opcode >= 0x05 && opcode <= 0x0B) || opcode == 0x0E) return false;
    if ((opcode >= 0x30 && opcode <= 0x37) || opcode == 0x77) return false;
    if ((opcode >= 0x80 && opcode <= 0x8F) || (opcode >= 0xC8 && opcode <= 0xCF)) return false;
    return !((opcode >= 0xA0 && opcode <= 0xA2) || (opcode >= 0xA8 && opcode <= 0xAA));
  }
  return true;
}

// The reg field selects the instruction.
bool isGroup(int map, int opcode) {
  if (map == 0)
    switch (opcode) {
    case 0x80: case 0x81: case 0x83: case 0x8F: case 0xC0: case 0xC1: case 0xC6: case 0xC7:
    case 0xD0: case 0xD1: case 0xD2: case 0xD3: case 0xF6: case 0xF7: case 0xFE: case 0xFF:
      return true;
    default:
      return opcode >= 0xD8 && opcode <= 0xDF;
    }
  if (map == 1)
    switch (opcode) {
    case 0x00: case 0x01: case 0x0D: case 0x71: case 0x72: case 0x73: case 0xAE: case 0xBA:
    case 0xC7: case 0xA6: case 0xA7:
      return true;
    default:
      return opcode >= 0x18 && opcode <= 0x1F;
    }
  return map == 2 && opcode == 0xF3;
}

bool parse(const uint8_t *start, const uint8_t *end, Layout &out) {
  const uint8_t *p = start;
  uint64_t prefixes = 0;  // bit 0: 66, 1: F2, 2: F3, 3: F0, 4: 67, 5: fs or gs
  int rex = 0, map = 0, kind = 0, length = 0, vvvv = 0, evex = 0;
  bool w = false;
  int r = 0, x = 0, b = 0, rHigh = 0, vHigh = 0;
  out = {};
  for (; p < end; ++p) {
    int bit = *p == 0x66 ? 1 : *p == 0xF2 ? 2 : *p == 0xF3 ? 4 : *p == 0xF0 ? 8 : *p == 0x67 ? 16
              : *p == 0x64 || *p == 0x65 ? 32 : 0;
    if (bit == 2) prefixes &= ~4ull;
    if (bit == 4) prefixes &= ~2ull;
    if ((*p & 0xF0) == 0x40) {
      rex = *p;  // counts only right before the opcode
      continue;
    }
    if (!bit && *p != 0x2E && *p != 0x36 && *p != 0x3E && *p != 0x26) break;
    prefixes |= bit, rex = 0;
  }
  if (rex) {
    w = rex & 8, r = (rex & 4) << 1, x = (rex & 2) << 2, b = (rex & 1) << 3;
  }
  if (p >= end || p - start > 14) return false;
  int opcode = *p++;
  auto left = [&](int n) { return end - p >= n; };
  if (opcode == 0xC5 && left(2)) {
    kind = 1, map = 1;
    r = (*p & 0x80) ? 0 : 8, vvvv = (~*p >> 3) & 15, length = (*p >> 2) & 1;
    prefixes |= (*p & 3) == 1 ? 1 : (*p & 3) == 2 ? 4 : (*p & 3) == 3 ? 2 : 0;
    ++p, opcode = *p++;
  } else if (opcode == 0xC4 && left(3)) {
    kind = 1, map = p[0] & 31;
    r = (p[0] & 0x80) ? 0 : 8, x = (p[0] & 0x40) ? 0 : 8, b = (p[0] & 0x20) ? 0 : 8;
    w = p[1] & 0x80, vvvv = (~p[1] >> 3) & 15, length = (p[1] >> 2) & 1;
    prefixes |= (p[1] & 3) == 1 ? 1 : (p[1] & 3) == 2 ? 4 : (p[1] & 3) == 3 ? 2 : 0;
    p += 2, opcode = *p++;
  } else if (opcode == 0x62 && left(4)) {
    kind = 2, map = p[0] & 7;
    r = (p[0] & 0x80) ? 0 : 8, x = (p[0] & 0x40) ? 0 : 8, b = (p[0] & 0x20) ? 0 : 8;
    rHigh = (p[0] & 0x10) ? 0 : 16, w = p[1] & 0x80, vvvv = (~p[1] >> 3) & 15;
    prefixes |= (p[1] & 3) == 1 ? 1 : (p[1] & 3) == 2 ? 4 : (p[1] & 3) == 3 ? 2 : 0;
    vHigh = (p[2] & 8) ? 0 : 16, length = (p[2] >> 5) & 3, out.mask = p[2] & 7;
    evex = (p[2] >> 7) | ((p[2] >> 3) & 2) | (out.mask ? 4 : 0);
    p += 3, opcode = *p++;
  } else if (opcode == 0x0F && left(1)) {
    map = 1, opcode = *p++;
    if (opcode == 0x38 || opcode == 0x3A) {
      map = opcode == 0x38 ? 2 : 3;
      if (!left(1)) return false;
      opcode = *p++;
    }
  }
  int extension = 0;
  out.opcodeRegister = (opcode & 7) | b;
  out.vvvv = vvvv | vHigh;
  out.rex = rex;
  out.base = out.index = None;
  bool modrm = hasModRM(map, opcode) && !(kind == 1 && map == 1 && opcode == 0x77);
  if (!modrm && map == 0 && opcode == 0x90) extension = b ? 1 : 0;
  if (modrm) {
    if (!left(1)) return false;
    int byte = *p++, mod = byte >> 6, reg = (byte >> 3) & 7, rm = byte & 7;
    out.memory = mod != 3;
    out.reg = reg | r | rHigh;
    out.rm = rm | b | (kind == 2 && mod == 3 ? x << 1 : 0);
    if (isGroup(map, opcode)) extension = 1 + reg;
    bool rmMatters = mod == 3 && ((map == 0 && opcode >= 0xD8 && opcode <= 0xDF) ||
                                  (map == 1 && (opcode == 0x01 || opcode == 0xAE || opcode == 0x1E)));
    if (rmMatters) extension |= (rm + 1) << 4;
    if (out.memory) {
      out.base = rm | b, out.scale = 1;
      if (rm == 4) {
        if (!left(1)) return false;
        int sib = *p++;
        out.base = (sib & 7) | b, out.scale = 1 << (sib >> 6);
        out.index = ((sib >> 3) & 7) | x;
        if (out.index == 4) out.index = None;
        if ((sib & 7) == 5 && mod == 0) out.base = None;
      } else if (rm == 5 && mod == 0) {
        out.base = None, out.rip = true;
      }
      int bytes = mod == 1 ? 1 : mod == 2 || out.base == None ? 4 : 0;
      if (!left(bytes)) return false;
      if (bytes == 1) out.displacement = int8_t(*p), out.byteDisplacement = true;
      if (bytes == 4) {
        int32_t value;
        std::memcpy(&value, p, 4);
        out.displacement = value;
      }
      p += bytes;
    }
  }
  out.segment = prefixes & 32;
  out.length = int(p - start);
  out.key = uint64_t(opcode) | uint64_t(map) << 8 | uint64_t(kind) << 13 | prefixes << 15 |
            uint64_t(w) << 21 | uint64_t(length) << 22 | uint64_t(modrm ? 1 + out.memory : 0) << 24 |
            uint64_t(extension) << 26 | uint64_t(evex) << 34 | uint64_t(vHigh && out.memory) << 38;
  return out.length <= 15;
}

int registerOf(int where, int cls, const Layout &in, int is4, uint8_t &high) {
  int number = where == Reg ? in.reg : where == Rm ? in.rm : where == Vvvv ? in.vvvv
               : where == OpcodeField ? in.opcodeRegister : is4;
  switch (cls) {
  case General8:
    if (!in.rex && number >= 4 && number < 8) high = 1, number -= 4;
    return number & 15;
  case General16: case General32: case General64: return number & 15;
  case VectorClass: return Vector + (number & 31);
  case MmxClass: case X87Class: return Stack + (number & 7);
  case MaskClass: return Mask + (number & 7);
  }
  return None;
}

void push(uint8_t *list, uint8_t &count, int reg) {
  for (int i = 0; i < count; ++i)
    if (list[i] == reg) return;
  if (reg != None && count < MostRegisters) list[count++] = uint8_t(reg);
}

// Whether a constant is one that some cores add while they rename registers.
bool small(int64_t constant) { return constant >= -1024 && constant <= 1023; }

// Which of the parameter sets of its form an operation uses: addressing modes and idioms.
int variantOf(const Op &op, const Template &row, const Layout &in, bool same, int fine) {
  if (in.memory) {
    bool base = in.base != None, index = in.index != None;
    if (!(row.traits & AddressOnly)) return in.rip || (!base && !index) ? 2 : index ? 1 : 0;
    if (in.rip) return 4;
    if (!index) return fine > 1 && base && !small(in.displacement) ? 6 : 0;
    if (base && in.displacement) return in.scale > 1 ? 5 : 3;
    return in.scale > 1 ? 2 : 1;
  }
  if (op.highByte) return 2;
  if (fine && row.immediateBytes > 1 && !small(op.immediate)) return 3;
  return same ? 1 : 0;
}

int64_t immediateOf(const uint8_t *p, int bytes) {
  switch (bytes) {
  case 1: return int8_t(*p);
  case 2: { int16_t v; std::memcpy(&v, p, 2); return v; }
  case 4: { int32_t v; std::memcpy(&v, p, 4); return v; }
  case 8: { int64_t v; std::memcpy(&v, p, 8); return v; }
  }
  return bytes ? int8_t(*p) : 0;
}

void fill(Op &op, const Template &row, const Layout &in, const uint8_t *bytes, int &top, int fine) {
  op = {};
  op.base = op.index = op.destination = op.source = None;
  op.emulation = uint8_t(row.emulation), op.width = uint8_t(row.width);
  op.category = uint8_t(row.category);
  op.length = uint8_t(in.length + row.immediateBytes);
  op.immediate = immediateOf(bytes + in.length, row.immediateBytes);
  op.segment = in.segment;
  op.stack = row.traits & StackOp ? 1 : 0;
  op.extends = row.traits & Extends ? 1 : 0;
  int is4 = row.immediateBytes ? (bytes[in.length] >> 4) & 15 : 0;
  int before = top, after = (top + row.stackStep) & 7;
  int registers[5], seen = 0;
  for (int i = 0; i < 5 && row.operands[i].place; ++i) {
    int where = row.operands[i].place, cls = row.operands[i].registerClass;
    int access = row.operands[i].access;
    int reg = None;
    if (where == Fixed) reg = cls;
    else if (where <= Is4) reg = registerOf(where, cls, in, is4, op.highByte);
    if (reg >= Stack && reg < Mask && cls != MmxClass)
      reg = Stack + ((reg - Stack + (access == Writes && row.stackStep < 0 ? after : before)) & 7);
    if (i == 0) op.destination = uint8_t(reg), op.destinationIsMemory = where == InMemory;
    if (i == 1) {
      op.source = uint8_t(reg), op.sourceIsMemory = where == InMemory;
      op.sourceIsImmediate = where >= InImmediate;
      op.sourceWidth = where == InMemory ? uint8_t(row.memorySize) : cls <= General64 ? uint8_t(1 << cls) : 8;
    }
    if (reg != None) registers[seen++] = reg;
    // A write of 8 or 16 bits keeps the rest of the register.
    bool merges = where <= Is4 && (cls == General8 || cls == General16) && (access & Writes);
    if ((access & Reads) || merges) push(op.reads, op.readCount, reg);
    if (access & Writes) push(op.writes, op.writeCount, reg);
  }
  bool same = seen >= 2 && registers[seen - 1] == registers[seen - 2];
  if (row.implicitMemory == NoImplicit && in.memory) {
    op.base = uint8_t(in.base), op.scale = uint8_t(in.scale), op.ripRelative = in.rip;
    op.index = row.traits & VectorIndex ? uint8_t(in.index == None ? None : Vector + in.index)
                                        : uint8_t(in.index);
    op.displacement = in.displacement * (in.byteDisplacement && row.tupleSize ? row.tupleSize : 1);
  }
  switch (row.implicitMemory) {
  case PushesStack: op.base = RSP, op.displacement = -row.memorySize; break;
  case PopsStack: op.base = RSP; break;
  case AtRdi: op.base = 7; break;
  case AtRsi: op.base = 6; break;
  case AtOffset: op.displacement = op.immediate; break;
  }
  op.addressOnly = row.traits & AddressOnly ? 1 : 0;
  op.load = row.memoryAccess & Reads && !op.addressOnly;
  op.store = row.memoryAccess & Writes && !op.addressOnly;
  op.memorySize = int16_t(row.memorySize);
  op.vectorLoad = row.traits & VectorOp ? 1 : 0;
  for (int reg : row.implicitReads) {
    if (reg < 0) break;
    if (reg >= Stack && reg < Mask) reg = Stack + ((reg - Stack + before) & 7);
    push(op.reads, op.readCount, reg);
  }
  for (int reg : row.implicitWrites) {
    if (reg < 0) break;
    if (reg >= Stack && reg < Mask)
      reg = Stack + ((reg - Stack + (row.stackStep < 0 ? after : before)) & 7);
    push(op.writes, op.writeCount, reg);
  }
  for (int flag = 0; flag < 3; ++flag) {
    if (row.flagsRead >> flag & 1) push(op.reads, op.readCount, Carry + flag);
    if (row.flagsWritten >> flag & 1) push(op.writes, op.writeCount, Carry + flag);
  }
  if (in.mask) push(op.reads, op.readCount, Mask + in.mask);
  int variant = variantOf(op, row, in, same, fine);
  if (same && !in.memory && row.traits & (ZeroIdiom | BreaksDependency)) {
    op.readCount = 0;
    op.zeroIdiom = row.traits & ZeroIdiom ? 1 : 0;
  }
  op.elided = row.traits & ElidedMove && !in.memory && !op.highByte;
  op.form = row.form * Variants + variant;
  top = after;
}

// A core may make one operation of a copy between general registers and simple arithmetic on the copy:
// whether it does is a parameter of the machine.
bool fuses(const Op &copy, const Op &op) {
  if (copy.category != CategoryMov || !copy.elided || copy.sourceIsImmediate || copy.fused) return false;
  if ((op.category != CategoryAlu && op.category != CategoryShift) || op.load || op.store || op.highByte) return false;
  if (op.destination != copy.destination || op.width != copy.width || op.width < 4) return false;
  bool reads = false;
  for (int i = 0; i < op.readCount; ++i) {
    reads |= op.reads[i] == op.destination;
    if (op.reads[i] == Carry || op.reads[i] == Overflow) return false;
  }
  return reads;
}

bool touchesStack(const Op &op) {
  auto in = [](uint8_t reg) { return reg >= Stack && reg < Mask; };
  return std::any_of(op.reads, op.reads + op.readCount, in) ||
         std::any_of(op.writes, op.writes + op.writeCount, in);
}

}  // namespace

void Decoder::add(uint64_t key, const Template &row) {
  auto [at, fresh] = index.try_emplace(key, int(rows.size()));
  if (fresh) rows.push_back(row);
  else rows[at->second] = row;
}

DecodeStatus Decoder::decode(const uint8_t *bytes, int size, std::vector<Op> &out, int *offset,
                             uint64_t *key) const {
  out.clear();
  int top = 0;
  for (int at = 0; at < size;) {
    Layout layout;
    *offset = at;
    // Most parsers look at up to 15 bytes; an instruction must also end inside the block.
    if (!parse(bytes + at, bytes + size, layout)) return Undecodable;
    *key = layout.key;
    auto found = index.find(layout.key);
    if (found == index.end()) return UnknownKey;
    const Template &row = rows[found->second];
    if (row.form < 0 || at + layout.length + row.immediateBytes > size) return Undecodable;
    out.emplace_back();
    Op &op = out.back();
    fill(op, row, layout, bytes + at, top, fineVariants);
    op.templateIndex = found->second;
    op.offset = int16_t(at);
    if (out.size() > 1) op.fused = fuses(out[out.size() - 2], op);
    at += op.length;
  }
  // Where the x87 stack moves from one repetition to the next it overflows, which costs every
  // instruction that touches it: such blocks have parameters of their own.
  if (top && fineVariants)
    for (Op &op : out)
      if (touchesStack(op) || rows[size_t(op.templateIndex)].stackStep) op.form = op.form / Variants * Variants + op.form % 4 + 4;
  return size > 0 ? Decoded : Undecodable;
}

}  // namespace nestor
