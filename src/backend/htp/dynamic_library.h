// A shared library loaded at run time without a word on our stdout. Used for
// the vendor's libraries.
#pragma once

#include <string>

#include "base/status.h"

namespace hexllm::htp {

// Move-only owner of a dlopen handle, with local symbols.
class DynamicLibrary {
 public:
  // Loads `folder`/`name`. kEnvironment when it is not there, is truncated or
  // cannot be loaded, with what to do.
  //
  // The vendor's library prints a line on stdout from its constructors, on the
  // thread that loads it. File descriptor 1 leads to /dev/null meanwhile, and
  // the lock of C's stdout is held, so that threads that print through it (or
  // std::cout) wait and lose nothing. A raw write(1) at that moment would be
  // lost: nothing of ours does that.
  static Result<DynamicLibrary> Load(const std::string& folder,
                                     const std::string& name);

  // Loads the library `name` of the system, as the dynamic linker finds it.
  // kEnvironment when it does not.
  static Result<DynamicLibrary> LoadFromSystem(const std::string& name);

  DynamicLibrary() = default;
  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  ~DynamicLibrary();

  // The address of a symbol, or null.
  void* Find(const char* symbol) const;
  const std::string& path() const { return path_; }

 private:
  // path_ is set.
  Status Open();

  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace hexllm::htp
