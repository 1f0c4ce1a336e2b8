#ifndef ELASTOR_CORE_BASE_INSTANTIATE_H_
#define ELASTOR_CORE_BASE_INSTANTIATE_H_

// Instantiates a function template for the template arguments that follow, or once for each of two
// types. Its parameters stand in its declaration and its definition alone. REQUIRES: no overload of
// the function takes these template arguments.
#define ELASTOR_INSTANTIATE_FOR(Function, ...) \
  template decltype(Function<__VA_ARGS__>) Function<__VA_ARGS__>;
#define ELASTOR_INSTANTIATE(Function, A, B) \
  ELASTOR_INSTANTIATE_FOR(Function, A)      \
  ELASTOR_INSTANTIATE_FOR(Function, B)

#endif  // ELASTOR_CORE_BASE_INSTANTIATE_H_
