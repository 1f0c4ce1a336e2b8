/* A C program that scores rows by libelastor_score.so: MODEL, then the fields of one row after the other. A
 * missing value is an empty argument. Prints a probability a line. */
#include <stdio.h>
#include <stdlib.h>

#include "elastor_score.h"

int main(int argc, char** argv) {
  char error[256] = "";
  elastor_model* model = NULL;
  size_t fields, rows, i;
  float* probabilities;
  int code = elastor_open(argv[1], &model, error, sizeof error);
  if (code != ELASTOR_OK) {
    printf("%d %s\n", code, error);
    return 0;
  }
  fields = elastor_fields(model);
  rows = (size_t)(argc - 2) / fields;
  probabilities = malloc(rows * elastor_outputs(model) * sizeof *probabilities);
  code = elastor_score_values(model, (const char* const*)argv + 2, rows, probabilities, error,
                              sizeof error);
  if (code != ELASTOR_OK) printf("%d %s\n", code, error);
  for (i = 0; code == ELASTOR_OK && i < rows; ++i) printf("%.9g\n", probabilities[i]);
  free(probabilities);
  elastor_close(model);
  return 0;
}
