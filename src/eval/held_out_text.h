// What recipes are judged on when the user names no text: prose, an exchange,
// figures and code, none of which calibration reads. Written for this project.
#pragma once

#include <string_view>

namespace hexllm {

inline constexpr std::string_view kHeldOutText =
    R"(The ferry to the outer islands leaves at six in the morning, before the wind comes up. Most of its passengers are asleep by the time it passes the breakwater; the rest stand at the rail with paper cups of coffee and watch the gulls. In winter it carries mail, flour and spare parts for the generator. In summer it carries tourists, who ask the captain whether there are whales. There are, he says, but they do not keep a timetable.

A thermometer does not measure heat, it measures how far a column of liquid has risen. That the two go together was discovered slowly. Early instruments were open at the top, so that they also answered to the pressure of the air, and two of them in the same room could disagree by several degrees. Only when the tubes were sealed, around 1654, could a reading in Florence be compared with one in Paris.

Question: What is the difference between weather and climate?
Answer: Weather is what happens on a day; climate is what happens on average over many years. A cold week says little about the climate, but thirty cold winters do.

The budget for the second quarter was 48,200 euros, of which 31,750 were spent on staff, 9,400 on rent and 2,615 on travel. The remainder was carried over.

for (int i = 0; i < count; ++i) {
  if (values[i] > limit) {
    total += values[i] - limit;
  }
}
)";

}  // namespace hexllm
