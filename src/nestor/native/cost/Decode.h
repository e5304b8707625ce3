// Machine code to operations: a byte parser and a table of instruction templates.
//
// The parser knows only how x86-64 lays out an instruction (prefixes, opcode, ModRM, SIB,
// displacement); what an opcode means comes from templates that Python makes with iced-x86
// (nestor/cost/isa/templates.py), one for each key. A template names its operands by where they are
// encoded, so that one serves all registers.
#pragma once
#include "Codes.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace nestor {

// An operand of an instruction, as one row of the table says it.
struct TemplateOperand {
  int32_t place;          // a Place
  int32_t registerClass;  // a RegisterClass, or the register's number if the place is Fixed
  int32_t access;         // a set of Access
};

// One row of the table, as Python writes it (nestor/cost/isa/template_layout.py). 32-bit numbers
// only, so that there is no padding.
struct Template {
  int32_t form;            // number of its instruction form, -1 for undecodable code
  int32_t immediateBytes;  // at the end of the instruction
  int32_t traits;          // a set of Trait
  int32_t emulation;       // an Emulation
  int32_t width;           // bytes of the first operand, at most 8
  int32_t memorySize;      // bytes
  int32_t memoryAccess;    // a set of Access
  int32_t flagsRead, flagsWritten;  // bits: carry, overflow, the others
  int32_t category;        // index into the categories of instructions
  int32_t stackStep;       // by which the x87 stack moves
  int32_t implicitMemory;  // an ImplicitMemory
  TemplateOperand operands[5];
  int32_t implicitReads[8], implicitWrites[8];  // register numbers, then -1
  int32_t tupleSize;       // what an EVEX displacement of one byte is multiplied by, or 0
  int32_t immediateSigned, mnemonic, spare[2];  // not read here
};
static_assert(sizeof(Template) == 48 * 4 && std::is_trivially_copyable_v<Template>);

constexpr int MostRegisters = 10;  // that an operation reads or writes; more are left out

struct Op {
  int32_t form;  // index of the parameters: template form * Variants + variant
  int32_t templateIndex;
  uint8_t reads[MostRegisters], writes[MostRegisters];
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

class Decoder {
public:
  int fineVariants = 2;  // 1: large immediates and moved x87 stacks have parameters of their own,
                         // 2: lea with a large displacement too
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
