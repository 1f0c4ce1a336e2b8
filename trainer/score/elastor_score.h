/* Scores rows by a trained model, in any program: docs/use/scoring.md, "In a program".
 *
 * Functions that can fail return one of the codes below and, unless it is ELASTOR_OK, write one
 * line of text that says why to error[0, error_size), cut off and ended by 0 (error may be NULL).
 * They neither end the process nor throw; a NULL that is not allowed is an error, too. A model may
 * be used by any number of threads at once; each call computes on its own thread, whose rounding
 * mode, traps and flags change no bit and are the same afterwards. */
#ifndef ELASTOR_TRAINER_SCORE_ELASTOR_SCORE_H_
#define ELASTOR_TRAINER_SCORE_ELASTOR_SCORE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ELASTOR_OK = 0,
  ELASTOR_USER_ERROR = 2,    /* the folder, an argument or a row is wrong */
  ELASTOR_MACHINE_ERROR = 3, /* the disk or the memory failed, or the CPU lacks instructions */
  ELASTOR_NOT_FINITE = 4,    /* the model's score of a row is not finite */
};

typedef struct elastor_model elastor_model;

/* Loads a model's folder, or the last version in a folder of publications that can be verified,
 * every byte of it. Why no later one could be taken, elastor_update tells. *model is NULL unless
 * ELASTOR_OK. */
int elastor_open(const char* folder, elastor_model** model, char* error, size_t error_size);
/* The same, with embedding rows of `rows`: "INT8" or "INT4" makes small rows of a model with
 * FLOAT32 rows, which take less memory; "FLOAT32" is elastor_open. Scores are then no longer those
 * of the trainer. A model whose rows were made small takes no deltas, only bases: let the run
 * publish small rows (publish.rows) in their place. */
int elastor_open_with_rows(const char* folder, const char* rows, elastor_model** model, char* error,
                           size_t error_size);
/* No call may be using the model. NULL is allowed. */
void elastor_close(elastor_model* model);

/* Takes all that is new in a folder of publications, in which the model was opened or a base of
 * which it is. Other threads may score meanwhile: they take no lock, and each call sees one whole
 * version. On error the last whole version stays. *version, which may be NULL, is elastor_version
 * of the model in either case. An update keeps one copy of what it changes; a missed delta
 * needs a base, that is a whole model, beside the old one. */
int elastor_update(elastor_model* model, const char* folder, uint64_t* version, char* error,
                   size_t error_size);
/* Makes *held the model as it is now, which no update changes: for several calls on one version. It
 * takes no lock. elastor_close ends it; until then its version keeps its memory, and each update of
 * the model keeps the rows that it changed. */
int elastor_hold(const elastor_model* model, elastor_model** held, char* error, size_t error_size);
/* The number of the model's version in its folder of publications; 0 if it is no publication. */
uint64_t elastor_version(const elastor_model* model);

/* Probabilities of a row: one for every label that the model has learned. Of no model (NULL) this
 * number and those below are 0. */
size_t elastor_outputs(const elastor_model* model);
/* The fields that the model reads, in the order of values below; a name lives as long as the model.
 * 0 when the model's folder does not tell how raw values are encoded. The name of a field that is
 * not there is NULL. */
size_t elastor_fields(const elastor_model* model);
const char* elastor_field_name(const elastor_model* model, size_t field);
/* Returns whether the values of a field are numbers. */
int elastor_field_is_number(const elastor_model* model, size_t field);
/* The name of an output's label; "" if the model has a single label without a name. NULL: no such
 * output. */
const char* elastor_output_name(const elastor_model* model, size_t output);
/* The digest of the training state that the model is part of, 32 hex digits; of a publication the
 * digest of its weights. It lives until the model's next update. NULL: no model. */
const char* elastor_digest(const elastor_model* model);
/* Return how many numbers and how many bags of ids an encoded row has. */
size_t elastor_numeric_fields(const elastor_model* model);
size_t elastor_categorical_fields(const elastor_model* model);
/* Returns whether a bag may have another number of ids than one. */
int elastor_takes_offsets(const elastor_model* model);

/* Raw rows. values[row * fields + field] is the text of a field as a file of rows would have it,
 * ended by 0; NULL or "" where it is missing. Writes probabilities[row * outputs + output], the
 * bits of the trainer's mode predict. On error nothing is written, and the text names row (from 0)
 * and field. */
int elastor_score_values(const elastor_model* model, const char* const* values, size_t rows,
                         float* probabilities, char* error, size_t error_size);

/* Encoded rows. numeric[row * numeric fields + field], NaN where it is missing and else finite, is
 * transformed and standardised. Arrays without elements may be NULL. The ids of bag b = row *
 * categorical fields + field are ids[offsets[b], offsets[b + 1]); offsets is NULL when every bag
 * has one id. The id of a keyed field is the 64 bits of its key, so keys from 2^63 on are
 * negative. */
int elastor_score_ids(const elastor_model* model, const float* numeric, const int64_t* ids,
                      const int64_t* offsets, size_t rows, float* probabilities, char* error,
                      size_t error_size);

/* The same two, with the logits too. Either array may be NULL, and is then left out. */
int elastor_score_values_and_logits(const elastor_model* model, const char* const* values,
                                    size_t rows, float* probabilities, float* logits, char* error,
                                    size_t error_size);
int elastor_score_ids_and_logits(const elastor_model* model, const float* numeric,
                                 const int64_t* ids, const int64_t* offsets, size_t rows,
                                 float* probabilities, float* logits, char* error,
                                 size_t error_size);

#ifdef __cplusplus
}
#endif

#endif /* ELASTOR_TRAINER_SCORE_ELASTOR_SCORE_H_ */
