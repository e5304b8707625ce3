// Asks a released model as LLVM's runners do, and writes what it answers.
//
//   vectors ROWS RESULTS FEATURE...
//
// ROWS holds int64 [rows, features]; RESULTS gets, for each row and each of the two classes, the
// logit and the answer as doubles.

#include "InlinerSizeModel.h"
#include "InlinerSizeModelEmitC.h"
#include <cstdio>
#include <vector>

int main(int Count, char **Words) {
  std::FILE *Rows = std::fopen(Words[1], "rb"), *Results = std::fopen(Words[2], "wb");
  if (!Rows || !Results)
    return 1;
  llvm::InlinerSizeModel Release;
  InlinerSizeModelEmitC EmitC;
  if (Release.LookupArgIndex("feed_no_such_feature") != -1 ||
      Release.LookupArgIndex("feed_model_selector") != -1)
    return 2;
  const int Result = Release.LookupResultIndex("fetch_inlining_decision");
  std::vector<int64_t *> Inputs, Mapped;
  for (int I = 3; I < Count; ++I) {
    const int Index = Release.LookupArgIndex(std::string("feed_") + Words[I]);
    const auto Found = EmitC.reflectionMap.find(Words[I]);
    if (Index < 0 || Found == EmitC.reflectionMap.end())
      return 3;
    Inputs.push_back(static_cast<int64_t *>(Release.arg_data(Index)));
    Mapped.push_back(reinterpret_cast<int64_t *>(Found->second));
  }
  std::vector<int64_t> Row(Inputs.size());
  while (std::fread(Row.data(), sizeof(int64_t), Row.size(), Rows) == Row.size()) {
    for (size_t I = 0; I < Row.size(); ++I)
      *Inputs[I] = *Mapped[I] = Row[I];
    Release.Run();
    const double Answers[] = {Release.logit(),
                              double(*static_cast<int64_t *>(Release.result_data(Result))),
                              EmitC.logit(), double(EmitC())};
    std::fwrite(Answers, sizeof(double), 4, Results);
  }
  return std::fclose(Results);
}
