// Tells Python which records and numbers this library was built with (nestor/cost/native/layout.py
// compares them with Python's own). A new field of a record is one line here, and the assertion
// below each record fails as long as that line is missing.
#include "Session.h"

#include <cstddef>
#include <string>

namespace nestor {
namespace {

struct Field {
  const char *name, *kind;
  size_t offset, size;
};

// The kinds are numpy's names, or those of records.
template <typename T> struct KindOf;
template <> struct KindOf<int32_t> { static constexpr const char *name = "int32"; };
template <> struct KindOf<float> { static constexpr const char *name = "float32"; };
template <> struct KindOf<TemplateOperand> {
  static constexpr const char *name = "TemplateOperand";
};
template <> struct KindOf<ListMemory> { static constexpr const char *name = "ListMemory"; };
template <> struct KindOf<KeyMemory> { static constexpr const char *name = "KeyMemory"; };

#define FIELD(Record, Name)                                                                      \
  Field{#Name, KindOf<std::remove_all_extents_t<decltype(Record::Name)>>::name,                   \
        offsetof(Record, Name), sizeof(Record::Name)}

template <size_t Count> constexpr size_t sizeOf(const Field (&fields)[Count]) {
  size_t sum = 0;
  for (const Field &field : fields) sum += field.size;
  return sum;
}

constexpr Field TemplateOperandFields[] = {
    FIELD(TemplateOperand, place), FIELD(TemplateOperand, registerClass),
    FIELD(TemplateOperand, access)};
static_assert(sizeOf(TemplateOperandFields) == sizeof(TemplateOperand));

constexpr Field TemplateFields[] = {
    FIELD(Template, form), FIELD(Template, immediateBytes), FIELD(Template, traits),
    FIELD(Template, emulation), FIELD(Template, width), FIELD(Template, memorySize),
    FIELD(Template, memoryAccess), FIELD(Template, flagsRead), FIELD(Template, flagsWritten),
    FIELD(Template, category), FIELD(Template, stackStep), FIELD(Template, implicitMemory),
    FIELD(Template, operands), FIELD(Template, implicitReads), FIELD(Template, implicitWrites),
    FIELD(Template, tupleSize), FIELD(Template, immediateSigned), FIELD(Template, mnemonic),
    FIELD(Template, spare)};
static_assert(sizeOf(TemplateFields) == sizeof(Template));

constexpr Field FormFields[] = {
    FIELD(FormParameters, slots), FIELD(FormParameters, latency), FIELD(FormParameters, ports),
    FIELD(FormParameters, executions), FIELD(FormParameters, secondPorts),
    FIELD(FormParameters, secondExecutions), FIELD(FormParameters, busy),
    FIELD(FormParameters, loadExtra)};
static_assert(sizeOf(FormFields) == sizeof(FormParameters));

constexpr Field MachineFields[] = {
    FIELD(MachineParameters, dispatchWidth), FIELD(MachineParameters, retireWidth),
    FIELD(MachineParameters, window), FIELD(MachineParameters, loadLatency),
    FIELD(MachineParameters, vectorLoadLatency), FIELD(MachineParameters, forwardLatency),
    FIELD(MachineParameters, vectorForwardLatency), FIELD(MachineParameters, renamedLatency),
    FIELD(MachineParameters, partialPenalty), FIELD(MachineParameters, splitLatency),
    FIELD(MachineParameters, pagePenalty), FIELD(MachineParameters, loadPorts),
    FIELD(MachineParameters, storePorts), FIELD(MachineParameters, commitWidth),
    FIELD(MachineParameters, entryOps), FIELD(MachineParameters, instructionBudget),
    FIELD(MachineParameters, renamed), FIELD(MachineParameters, storeQueue),
    FIELD(MachineParameters, lineCommit), FIELD(MachineParameters, indexedForwardLatency),
    FIELD(MachineParameters, fusesCopies), FIELD(MachineParameters, renamesVectors),
    FIELD(MachineParameters, renamesExtending),
    FIELD(MachineParameters, partialConstantPenalty),
    FIELD(MachineParameters, entryBytes), FIELD(MachineParameters, freeEntries),
    FIELD(MachineParameters, fineVariants),
    FIELD(MachineParameters, bankReads)};
static_assert(sizeOf(MachineFields) == sizeof(MachineParameters));

constexpr Field OperationFields[] = {
    FIELD(OperationRecord, form), FIELD(OperationRecord, length), FIELD(OperationRecord, base),
    FIELD(OperationRecord, index), FIELD(OperationRecord, idiom),
    FIELD(OperationRecord, readCount), FIELD(OperationRecord, writeCount),
    FIELD(OperationRecord, reads), FIELD(OperationRecord, writes)};
static_assert(sizeOf(OperationFields) == sizeof(OperationRecord));

constexpr Field AnswerFields[] = {
    FIELD(Answer, cycles), FIELD(Answer, low), FIELD(Answer, high),
    FIELD(Answer, instructions), FIELD(Answer, untrained), FIELD(Answer, borrowed),
    FIELD(Answer, refused)};
static_assert(sizeOf(AnswerFields) == sizeof(Answer));

constexpr Field ListMemoryFields[] = {FIELD(ListMemory, mean), FIELD(ListMemory, least),
                                      FIELD(ListMemory, most), FIELD(ListMemory, seen),
                                      FIELD(ListMemory, unseen)};
static_assert(sizeOf(ListMemoryFields) == sizeof(ListMemory));

constexpr Field KeyMemoryFields[] = {FIELD(KeyMemory, mean), FIELD(KeyMemory, seen)};
static_assert(sizeOf(KeyMemoryFields) == sizeof(KeyMemory));

constexpr Field BlockMemoryFields[] = {
    FIELD(BlockMemory, form), FIELD(BlockMemory, pair), FIELD(BlockMemory, link),
    FIELD(BlockMemory, skeleton), FIELD(BlockMemory, sequence)};
static_assert(sizeOf(BlockMemoryFields) == sizeof(BlockMemory));

std::string quoted(const std::string &text) { return '"' + text + '"'; }

template <size_t Count>
std::string record(const char *name, size_t size, const Field (&fields)[Count]) {
  std::string text = quoted(name) + ":{\"size\":" + std::to_string(size) + ",\"fields\":[";
  for (const Field &field : fields)
    text += (&field == fields ? "[" : ",[") + quoted(field.name) + "," + quoted(field.kind) + "," +
            std::to_string(field.offset) + "," + std::to_string(field.size) + "]";
  return text + "]}";
}

std::string describe() {
  std::string text = "{\"records\":{";
  text += record("TemplateOperand", sizeof(TemplateOperand), TemplateOperandFields);
  text += "," + record("Template", sizeof(Template), TemplateFields);
  text += "," + record("FormParameters", sizeof(FormParameters), FormFields);
  text += "," + record("MachineParameters", sizeof(MachineParameters), MachineFields);
  text += "," + record("OperationRecord", sizeof(OperationRecord), OperationFields);
  text += "," + record("Answer", sizeof(Answer), AnswerFields);
  text += "," + record("ListMemory", sizeof(ListMemory), ListMemoryFields);
  text += "," + record("KeyMemory", sizeof(KeyMemory), KeyMemoryFields);
  text += "," + record("BlockMemory", sizeof(BlockMemory), BlockMemoryFields);
  text += "},\"codes\":{";
#define NESTOR_CODE(Name, Value) text += quoted(#Name) + ":" + std::to_string(Value) + ",";
#define NESTOR_CODES(Name, List)                                                                 \
  text += quoted(Name) + ":{";                                                                   \
  List(NESTOR_CODE) text.back() = '}';                                                            \
  text += ",";
  NESTOR_CODES("Register", NESTOR_REGISTER_NUMBERS)
  NESTOR_CODES("Trait", NESTOR_TRAITS)
  NESTOR_CODES("Access", NESTOR_ACCESSES)
  NESTOR_CODES("Place", NESTOR_PLACES)
  NESTOR_CODES("RegisterClass", NESTOR_REGISTER_CLASSES)
  NESTOR_CODES("ImplicitMemory", NESTOR_IMPLICIT_MEMORIES)
  NESTOR_CODES("Emulation", NESTOR_EMULATIONS)
  NESTOR_CODES("Category", NESTOR_CATEGORIES)
  NESTOR_CODES("DecodeStatus", NESTOR_DECODE_STATUSES)
  NESTOR_CODES("NodeShift", NESTOR_NODE_SHIFTS)
  NESTOR_CODES("FormStatus", NESTOR_FORM_STATUSES)
  NESTOR_CODES("StartState", NESTOR_START_STATE)
  NESTOR_CODES("Limit", NESTOR_LIMITS)
  text.back() = '}';
  text += ",\"names\":{\"plain features\":[";
  for (const char *name : plainFeatureNames()) text += quoted(name) + ",";
  text.back() = ']';
  return text + "}}";
}

}  // namespace
}  // namespace nestor

#pragma GCC visibility push(default)
// JSON: records with their fields, enumerations, and the names of features in their order.
extern "C" const char *nestor_cost_layout() {
  static const std::string text = nestor::describe();
  return text.c_str();
}
#pragma GCC visibility pop
