/* What is told of each path that changed, whoever found it. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ROWS 200000
#define BUDGET (512LL << 20)   /* bytes read per call, so that huge sparse files stall no score */

void begin_rows(struct rows *rows) {
    memset(rows, 0, sizeof *rows);
    rows->budget = BUDGET;
}

/* A path has no first slash. `info` is NULL for what is gone. */
void add_row(struct rows *rows, const char *path, size_t length, const char *kind,
             const struct facts *info, const char *digest, const char *target) {
    if (rows->count >= MOST_ROWS) return;
    if (rows->count == rows->room) {
        rows->room = rows->room ? rows->room * 2 : 64;
        if (!(rows->all = realloc(rows->all, rows->room * sizeof *rows->all))) abort();
    }
    struct row *row = &rows->all[rows->count++];
    row->path = strndup(path, length);
    row->target = *target ? strdup(target) : NULL;
    row->digest = *digest ? strdup(digest) : NULL;
    row->kind = kind;
    row->mode = info ? info->mode & 07777 : 0;
    row->size = info && !strcmp(kind, "file") ? info->size : 0;
    row->new = info && info->new;
}

void forget_rows(struct rows *rows, size_t from) {
    while (rows->count > from) {
        struct row *row = &rows->all[--rows->count];
        free(row->path);
        free(row->target);
        free(row->digest);
    }
}

/* Whether a file of this size may still be read; if not, its size is what stands for it. */
bool may_read(struct rows *rows, long long size, char hex[80]) {
    rows->budget -= size;
    if (rows->budget >= 0) return true;
    snprintf(hex, 80, UNREAD ":%lld", size);
    return false;
}

/* SHA-256 of an open file, which it closes. */
int digest_of(int file, char hex[80]) {
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

void put_path(struct text *out, const char *path) {
    char *whole;
    if (asprintf(&whole, "/%s", path) < 0) abort();
    put_quoted(out, whole);
    free(whole);
}

static void write_row(struct text *out, const struct row *row) {
    put(out, "[", 1);
    put_path(out, row->path);
    put_format(out, ",\"%s\",%u,%lld,\"%s\",", row->kind, row->mode, row->size,
               row->digest ? row->digest : "");
    put_quoted(out, row->target ? row->target : "");
    put_format(out, ",%s]", row->new ? "true" : "false");
}

/* By path, as the members of a JSON list; nothing of them is kept. */
void write_rows(struct text *out, struct rows *rows, bool paths_only) {
    if (rows->count) qsort(rows->all, rows->count, sizeof *rows->all, by_path);
    for (size_t i = 0; i < rows->count; i++) {
        if (i) put(out, ",", 1);
        if (paths_only) put_path(out, rows->all[i].path);
        else write_row(out, &rows->all[i]);
    }
}
