// Several lambdas as one visitor of a variant.
#pragma once

namespace hexllm::jinja {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

}  // namespace hexllm::jinja
