// What an operation does to the general registers, as far as addresses need it.
#pragma once
#include "Decode.h"

#include <cstdint>

namespace nestor {

inline uint64_t scramble(uint64_t value) {
  value ^= value >> 31;
  value *= 0x9E3779B97F4A7C15ull;
  return value ^ value >> 29;
}

// The general registers of the harness at the start of a measurement.
struct Registers64 {
  uint64_t r[16];
  void reset() {
    for (int i = 0; i < 16; ++i) r[i] = FirstRegister + uint64_t(i) * RegisterStep;
    r[RSP] = StackPointer;
  }
  void write(int reg, int width, uint64_t value) {
    if (reg > 15) return;
    if (width == 8) r[reg] = value;
    else if (width == 4) r[reg] = uint32_t(value);
    else if (width == 2) r[reg] = (r[reg] & ~0xFFFFull) | (value & 0xFFFF);
    else r[reg] = (r[reg] & ~0xFFull) | (value & 0xFF);
  }
};

inline uint64_t truncate(uint64_t value, int width) {
  return width >= 8 ? value : value & ((1ull << (8 * width)) - 1);
}

inline uint64_t extend(uint64_t value, int width) {
  return width == 1 ? uint64_t(int8_t(value)) : width == 2 ? uint64_t(int16_t(value))
         : width == 4 ? uint64_t(int32_t(value)) : value;
}

// Applies `op`; `loaded` is the memory operand's value. Returns the value that a store writes.
inline uint64_t emulate(const Op &op, Registers64 &file, uint64_t loaded, uint64_t address) {
  auto value = [&](int reg) { return reg < 16 ? file.r[reg] : 0; };
  uint64_t a = op.destinationIsMemory ? loaded : value(op.destination);
  uint64_t b = op.sourceIsMemory ? loaded : op.sourceIsImmediate ? uint64_t(op.immediate)
                                                                  : value(op.source);
  int width = op.width;
  uint64_t result = a;
  switch (op.emulation) {
  case Nothing: return op.store ? b : 0;
  case Move: result = b; break;
  case Add: result = a + b; break;
  case Sub: result = a - b; break;
  case And: result = a & b; break;
  case Or: result = a | b; break;
  case Xor: result = a ^ b; break;
  case Lea: result = address; break;
  case Inc: result = a + 1; break;
  case Dec: result = a - 1; break;
  case Neg: result = -a; break;
  case Not: result = ~a; break;
  case Shl: result = a << (b & (width == 8 ? 63 : 31)); break;
  case Shr: result = truncate(a, width) >> (b & (width == 8 ? 63 : 31)); break;
  case Sar: result = uint64_t(int64_t(extend(a, width)) >> (b & (width == 8 ? 63 : 31))); break;
  case MoveZero: result = truncate(b, op.sourceWidth); break;
  case MoveSign: result = extend(b, op.sourceWidth); break;
  case Push:
    file.r[RSP] -= op.memorySize;
    return a;
  case Pop:
    file.r[RSP] += op.memorySize;
    result = loaded;
    break;
  case Exchange:
    if (op.destinationIsMemory) {
      uint64_t stored = value(op.source);
      file.write(op.source, width, loaded);
      return stored;
    }
    file.write(op.source, width, a);
    result = b;
    break;
  case Multiply: result = extend(a, width) * extend(b, width); break;
  case Multiply3: result = b * uint64_t(op.immediate); break;
  case SignToRdx: file.write(2, width, uint64_t(int64_t(extend(value(0), width)) >> 63)); return 0;
  case ByteSwap: result = width == 8 ? __builtin_bswap64(a) : __builtin_bswap32(uint32_t(a)); break;
  case SignExtend: file.write(0, width, extend(value(0), width / 2)); return 0;
  case Step: file.r[6] += op.memorySize, file.r[7] += op.memorySize; return value(0);
  case SetBit: result = scramble(value(0) + op.offset) & 1; break;
  default:
    result = scramble(a * 3 + b + op.form);
    for (int i = 0; i < op.writeCount; ++i)
      if (op.writes[i] < 16) file.write(op.writes[i], width, scramble(result + op.writes[i]));
    return result;
  }
  if (op.destinationIsMemory) return result;
  if (op.destination < 16 && !op.highByte) file.write(op.destination, width, result);
  return result;
}

}  // namespace nestor
