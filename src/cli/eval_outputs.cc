#include "cli/eval_outputs.h"

#include "cli/model_argument.h"
#include "cli/output.h"
#include "eval/report_html.h"
#include "eval/report_text.h"

namespace hexllm::cli {
namespace {

Status WriteTo(std::optional<OutputFile>& file, const std::string& text) {
  if (!file) return OkStatus();
  HX_RETURN_IF_ERROR(file->Write(AsBytes(text)));
  return file->Commit();
}

}  // namespace

Result<EvalFiles> EvalFiles::Open(const EvalOutputs& outputs,
                                  const std::string& model,
                                  const std::vector<std::string>& inputs) {
  if (!outputs.json.empty()) {
    HX_RETURN_IF_ERROR(CheckOutputsDiffer(outputs.json, outputs.csv, "--csv"));
    HX_RETURN_IF_ERROR(
        CheckOutputsDiffer(outputs.json, outputs.report, "--report"));
  }
  if (!outputs.csv.empty()) {
    HX_RETURN_IF_ERROR(
        CheckOutputsDiffer(outputs.csv, outputs.report, "--report"));
  }
  HX_ASSIGN_OR_RETURN(auto json, OptionalOutput(outputs.json, model, inputs));
  HX_ASSIGN_OR_RETURN(auto csv, OptionalOutput(outputs.csv, model, inputs));
  HX_ASSIGN_OR_RETURN(auto report,
                      OptionalOutput(outputs.report, model, inputs));
  return EvalFiles(std::move(json), std::move(csv), std::move(report));
}

Status EvalFiles::Say(std::string_view text) {
  Status said = PrintNow(text);
  if (!json_ && !csv_ && !report_) return said;
  if (said_.ok()) said_ = std::move(said);
  return OkStatus();
}

Status EvalFiles::Write(const EvalResult& result, WithItems with_items) {
  HX_RETURN_IF_ERROR(
      WriteTo(json_, DumpJson(ResultToJson(result, with_items)) + "\n"));
  HX_RETURN_IF_ERROR(WriteTo(csv_, ResultToCsv(result)));
  HX_RETURN_IF_ERROR(WriteTo(report_, ResultToHtml(result)));
  return said_;
}

}  // namespace hexllm::cli
