/* Collects one row per changed path, for namespaces and containers, and writes the rows as JSON. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ROWS 200000
/* bytes read per request, so that huge sparse files cannot stall it */
#define BUDGET (512LL << 20)

void init_rows(struct rows *rows) {
    memset(rows, 0, sizeof *rows);
    rows->budget = BUDGET;
}

/* Add a row. `path` has no leading slash. `info` is NULL for a deleted path. */
void add_row(struct rows *rows, const char *path, size_t length, const char *kind,
             const struct metadata *info, const char *digest, const char *target) {
    if (rows->count >= MOST_ROWS) return;
    rows->items = ensure_capacity(rows->items, rows->count, &rows->capacity, sizeof *rows->items);
    struct row *row = &rows->items[rows->count++];
    row->path = strndup(path, length);
    row->target = *target ? strdup(target) : NULL;
    row->digest = *digest ? strdup(digest) : NULL;
    row->kind = kind;
    row->mode = info ? info->mode & 07777 : 0;
    row->size = info && !strcmp(kind, "file") ? info->size : 0;
    row->new = info && info->new;
}

void truncate_rows(struct rows *rows, size_t from) {
    while (rows->count > from) {
        struct row *row = &rows->items[--rows->count];
        free(row->path);
        free(row->target);
        free(row->digest);
    }
}

/* Return whether a file of this size may still be read. If not, write its size to `hex` instead
   of a digest. */
bool charge_read_budget(struct rows *rows, long long size, char hex[80]) {
    rows->budget -= size;
    if (rows->budget >= 0) return true;
    snprintf(hex, 80, UNREAD ":%lld", size);
    return false;
}

/* Compute the SHA-256 of an open file, and close it. */
int hash_file(int file, char hex[80]) {
    unsigned char data[1 << 14];
    struct sha256 sha;
    ssize_t got;
    if (file < 0) return -1;
    sha256_begin(&sha);
    while ((got = read(file, data, sizeof data)) > 0) {
        sha256_add(&sha, data, (size_t)got);
        if (got < (ssize_t)sizeof data) break;
    }
    int code = errno;
    close(file);
    errno = code;
    sha256_end(&sha, hex);
    return got < 0 ? -1 : 0;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const struct row *)a)->path, ((const struct row *)b)->path);
}

void append_json_path(struct text *out, const char *path) {
    char *whole;
    if (asprintf(&whole, "/%s", path) < 0) abort();
    append_json_string(out, whole);
    free(whole);
}

static void write_row(struct text *out, const struct row *row) {
    append(out, "[", 1);
    append_json_path(out, row->path);
    append_format(out, ",\"%s\",%u,%lld,\"%s\",", row->kind, row->mode, row->size,
                  row->digest ? row->digest : "");
    append_json_string(out, row->target ? row->target : "");
    append_format(out, ",%s]", row->new ? "true" : "false");
}

/* Write the rows sorted by path, as the members of a JSON list. */
void write_rows(struct text *out, struct rows *rows, bool paths_only) {
    if (rows->count) qsort(rows->items, rows->count, sizeof *rows->items, by_path);
    for (size_t i = 0; i < rows->count; i++) {
        if (i) append(out, ",", 1);
        if (paths_only) append_json_path(out, rows->items[i].path);
        else write_row(out, &rows->items[i]);
    }
}
