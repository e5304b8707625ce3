// Machine code to operations: a byte parser and a table of instruction templates.
//
// The parser knows only how x86-64 lays out an instruction (prefixes, opcode, ModRM, SIB,
// displacement); what an opcode means comes from templates that Python makes with iced-x86
// (nestor/cost/encoding.py), one for each key. A template names its operands by where they are
// encoded, so that one serves all registers.
#pragma once
#include <cstdint>
#include <cstddef>
#include <unordered_map>
#include <vector>

namespace nestor {

// Registers: 0-15 general, 16-47 vector, 48-55 x87 and MMX, 56-63 mask, then flags in the three
// groups that AMD renames apart.
enum Register : uint8_t { RSP = 4, Vector = 16, Stack = 48, Mask = 56, Carry = 64, Overflow = 65, Zero = 66, Registers = 67, None = 255 };

// One row of the table, as Python writes it: see encoding.py for the meaning of each field.
struct Template {
  int32_t form, immediateBytes, traits, emulation, width, memorySize, memoryAccess, flagsRead,
      flagsWritten, category, stackStep, implicitMemory;
  int32_t operands[5][3];  // where it is encoded, register class, access
  int32_t implicitReads[8], implicitWrites[8];
  int32_t tupleSize, immediateSigned, mnemonic, spare[2];
};
constexpr int TemplateWords = sizeof(Template) / 4;
static_assert(TemplateWords == 48);

enum Trait : int32_t {
  ZeroIdiom = 1,       // the same register twice: the result is 0 and nothing is executed
  BreaksDependency = 2,  // the same register twice: executed, but waits for nothing
  ElidedMove = 4,      // a copy between registers that renaming can do
  AddressOnly = 8,     // lea, nop: the memory operand is not accessed
  VectorIndex = 16,    // gather and scatter
  VectorOp = 32,       // the load goes to the floating-point side
  StackOp = 64,        // push or pop
  Extends = 128,       // movzx, movsx
};

enum Access : int32_t { Reads = 1, Writes = 2 };

struct Op {
  int32_t form;  // index of the parameters: template form * Variants + variant
  int32_t templateIndex;
  uint8_t reads[10], writes[10];
  uint8_t readCount, writeCount;
  uint8_t base, index, scale;
  uint8_t load, store, addressOnly, ripRelative, zeroIdiom, elided, vectorLoad;
  uint8_t emulation, width, destination, source, length, category, highByte, segment;
  uint8_t stack, extends;  // push or pop; a load that widens what it reads
  uint8_t fused;  // rides with the copy before it: see fuses()
  uint8_t sourceIsMemory, destinationIsMemory, sourceIsImmediate, sourceWidth;
  int16_t memorySize;
  int16_t offset;  // from the start of the block, bytes
  int64_t displacement, immediate;
};

constexpr int Variants = 8;

enum class DecodeStatus { Ok, UnknownKey, Invalid };

class Decoder {
public:
  // Adds a template under a key; the last one wins.
  void add(uint64_t key, const Template &row);
  // Decodes a block into `out`. On UnknownKey `*offset` is where Python must explain an
  // instruction and `*key` the key to add its template under.
  DecodeStatus decode(const uint8_t *bytes, int size, std::vector<Op> &out, int *offset,
                      uint64_t *key) const;

private:
  std::unordered_map<uint64_t, int> index;
  std::vector<Template> rows;
};

}  // namespace nestor
