// What calibration reads when the user names nothing: prose, a dialogue, a
// list, numbers and code, so that most habits of text occur, and a chat, whose
// turns are marked by tokens that occur nowhere else. Written for this project.
#pragma once

#include <string_view>

namespace hexllm {

inline constexpr std::string_view kDefaultCalibrationText =
    R"(The old observatory stood on a hill above the harbour, and on clear nights its keeper still climbed the iron stairs to open the dome. Nobody had paid for the work in twenty years. She did it because the lens was good, because the town was dark, and because a child from the school had once asked her how far away the nearest star was and had not believed the answer. "Four years," she had said, "if you travel as fast as light can." The child counted on her fingers and decided that she would be eleven.

Rivers carry stone to the sea. A grain of quartz that leaves a mountain in spring may rest on a sandbank for a century before the next flood moves it, and by then its corners are round. Geologists read this roundness as others read a postmark: it tells how long the journey was, though not where it began. The chemistry of the grain tells the rest. In 1987 a team from three universities compared 2,416 samples along 640 kilometres of one river and found that nearly 38% of the sand at its mouth came from a single valley in the north.

Question: Why does bread rise?
Answer: Yeast eats the sugars in the dough and gives off carbon dioxide. The gas is caught in a net of gluten, which forms when flour and water are kneaded, and the bubbles grow until the heat of the oven sets the crumb. Without salt the yeast works too fast; without time the taste is flat.

To plan a small garden:
1. Measure the ground and note where the sun falls at noon.
2. Choose plants that want the same water: tomatoes, basil and peppers get along; mint should have a pot of its own.
3. Dig in compost two weeks before planting (about 5 kg per square metre).
4. Keep a diary. Next year you will not remember.

def moving_average(values, width):
    """Mean of each run of `width` values."""
    if width < 1 or width > len(values):
        raise ValueError(f"width must be in 1..{len(values)}, got {width}")
    total = sum(values[:width])
    result = [total / width]
    for i in range(width, len(values)):
        total += values[i] - values[i - width]
        result.append(total / width)
    return result

The committee met on Tuesday, 14 March, and agreed on three points: the bridge would be closed at night, heavy lorries would use the southern road, and the mayor would write to the ministry. Two members voted against. "It is not the cost," said Mrs Okafor, "it is that we were told the same in 2009, in 2013, and again last autumn." The minutes do not record a reply.

Dear Tomas, thank you for the photographs! The one with the snow on the roof is already on our wall. Could you send me the recipe for the soup as well? I remember beans, smoked paprika and something sour, but I cannot get it right. We hope to visit in June, if the trains are running again. Give my love to everyone. Yours, Ines
)";

// A user's message and the answer. For models with a chat template.
struct CalibrationTurn {
  std::string_view question;
  std::string_view answer;
};
inline constexpr CalibrationTurn kDefaultCalibrationChat[] = {
    {"Why does bread rise?",
     "Yeast eats the sugars in the dough and gives off carbon dioxide. The gas "
     "is caught in a net of gluten, which forms when flour and water are "
     "kneaded, and the bubbles grow until the heat of the oven sets the "
     "crumb."},
    {"How do I plan a small garden? Give me a short list.",
     "1. Measure the ground and note where the sun falls at noon.\n"
     "2. Choose plants that want the same water.\n"
     "3. Dig in compost two weeks before planting.\n"
     "4. Keep a diary: next year you will not remember."},
    {"Write a Python function that adds two numbers.",
     "```python\ndef add(a, b):\n    return a + b\n```"},
    {"Thanks!", "You're welcome! Is there anything else I can help you with?"},
};

}  // namespace hexllm
