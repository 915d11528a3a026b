// Golden files: expected text under tests/golden/, compared by tests and
// rewritten by them on request:
//   <folder>_tests --update_goldens        then review the diff
// The test program must have main() of this form: return
// RunTestsWithGoldens(argc, argv);
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

namespace hexllm::testing {

// The golden files of one folder under tests/golden/ that a test program has
// read.
class Goldens {
 public:
  static Goldens& Get() {
    static Goldens goldens;
    return goldens;
  }

  bool update = false;

  std::filesystem::path Folder(std::string_view folder) const {
    return std::filesystem::path(HEXLLM_SOURCE_DIR) / "tests" / "golden" /
           folder;
  }

  // The text of tests/golden/<folder>/<name>. A missing file fails the test.
  std::string Read(std::string_view folder, const std::string& name) {
    std::ifstream in(Note(folder, name), std::ios::binary);
    EXPECT_TRUE(in.good()) << "no golden file " << Note(folder, name);
    return {std::istreambuf_iterator<char>(in),
            std::istreambuf_iterator<char>()};
  }

  // Compares `found` with the file, or writes it there with --update_goldens.
  void Expect(std::string_view folder, const std::string& name,
              const std::string& found) {
    if (update) {
      std::ofstream out(Note(folder, name), std::ios::binary | std::ios::trunc);
      out << found;
      EXPECT_TRUE(out.flush().good());
      return;
    }
    EXPECT_EQ(found, Read(folder, name)) << "golden file " << Note(folder, name)
                                         << "; --update_goldens rewrites it";
  }

  // Fails for files of the folder that nothing asked for.
  void ExpectAllRead(std::string_view folder) const {
    for (const auto& entry :
         std::filesystem::directory_iterator(Folder(folder))) {
      EXPECT_TRUE(read_.contains(entry.path()))
          << "no test reads the golden file " << entry.path();
    }
  }

 private:
  std::filesystem::path Note(std::string_view folder, const std::string& name) {
    const std::filesystem::path path = Folder(folder) / name;
    read_.insert(path);
    return path;
  }

  std::set<std::filesystem::path> read_;
};

// main() of a test program with goldens.
inline int RunTestsWithGoldens(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--update_goldens")
      Goldens::Get().update = true;
  }
  return RUN_ALL_TESTS();
}

}  // namespace hexllm::testing
