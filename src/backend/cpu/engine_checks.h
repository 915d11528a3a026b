// What each op of a plan demands of its operands and numbers, one function per
// op, one file per family. Internal to cpu/engine_check*.
#pragma once

#include "backend/cpu/engine_checker.h"

namespace hexllm::cpu {

// engine_check_weights.cc
void CheckEmbed(StepChecker& check);
void CheckMatMul(StepChecker& check);
void CheckQuantizeRows(StepChecker& check);
void CheckMatMulQ(StepChecker& check);
// engine_check_codes.cc
void CheckDecode(StepChecker& check);
void CheckEncode(StepChecker& check);
void CheckRound(StepChecker& check);
void CheckRoundF16(StepChecker& check);
void CheckConvertCodes(StepChecker& check);
void CheckConvertHalves(StepChecker& check);
void CheckChipSoftmax(StepChecker& check);
void CheckRowCodes(StepChecker& check);
void CheckCodeMatMul(StepChecker& check);
void CheckFixedPointMatMul(StepChecker& check);
// engine_check_attention.cc
void CheckRope(StepChecker& check);
void CheckAttention(StepChecker& check);
void CheckBatchMatMul(StepChecker& check);
void CheckSoftmax(StepChecker& check);
// engine_check_moves.cc
void CheckStore(StepChecker& check);
void CheckCopyRows(StepChecker& check);
void CheckConcat(StepChecker& check);
void CheckTranspose(StepChecker& check);

}  // namespace hexllm::cpu
