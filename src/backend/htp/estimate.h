// What the vendor's compiler thinks a graph will take on the device: it has a
// cost simulator that writes its predicted schedule as a Chrome trace when
// asked to by internal keys. Used at compile time and by `hexllm bench
// --estimate`. An estimate: host calls, buffers and clocks that fall are not in
// it, and nothing is made up when it is absent.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backend/htp/soc_table.h"
#include "base/status.h"

namespace hexllm::htp {

// One kind of work on one unit of the NPU.
struct EstimatedOp {
  std::string unit;  // "main" (also drives HMX, the matrix unit), "HVX", "DMA"
  std::string name;  // the compiler's: "ConvLayer_s1.opt"
  uint64_t count = 0;
  double busy_us = 0;  // over all threads of the unit: overlaps other units
};

struct GraphEstimate {
  std::string soc;  // as the compiler calls it: "SM8750"
  double cycles = 0;
  double core_mhz = 0;
  double us = 0;  // cycles / core_mhz
  uint64_t ddr_read_bytes = 0;
  uint64_t ddr_write_bytes = 0;
  // Of these: what did not fit into VTCM. High numbers mean a graph that should
  // be cut otherwise.
  uint64_t spill_bytes = 0;
  uint64_t fill_bytes = 0;
  std::vector<EstimatedOp> ops;  // longest busy first
};

// The GraphOptions::finalize_keys that let the compiler write its schedule of a
// graph to `trace_path`, at the highest clocks. The binary keeps the compiler's
// options, these among them: not for binaries that are shipped. kUnsupported
// for a SoC that it has no cost model of (the compiler would fail).
Result<std::vector<std::pair<std::string, std::string>>> EstimateKeys(
    const Soc& soc, const std::string& trace_path);

// Reads what was written there by Finalize. kUnsupported when there is no such
// file: the library does not know the keys. kBadInput when it is no such trace.
// About 1 s per 100 MB (30 layers); memory does not grow with the file. The
// file itself can be looked at in ui.perfetto.dev (times are core cycles).
Result<GraphEstimate> ReadEstimate(const std::string& trace_path);

}  // namespace hexllm::htp
