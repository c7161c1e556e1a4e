/* Writes one row per changed path as JSON, for namespaces and containers. Rows are sent while the
   changes are still being searched for, so they take no memory here. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* bytes that a listing hashes, so that huge sparse files cannot stall it: of all files, and then of
   those that are small */
#define BUDGET (512LL << 20)
#define SMALL_BUDGET (512LL << 20)
#define SMALL (1LL << 20)
/* price of a row beside its text: what the owner's objects take */
#define ROW_PRICE 128
#define PART (256 << 10)  /* bytes of JSON that are sent at a time */

/* `out`: the answer so far. The rows are appended to it, or only their paths. `space`: the bytes
   that they may take. */
void begin_rows(struct rows *rows, struct text *out, bool paths_only, long long space) {
    *rows = (struct rows){.out = out, .budget = BUDGET, .small_budget = SMALL_BUDGET,
                          .space = space, .paths_only = paths_only};
    append_format(out, ", \"rows\": [");
}

/* Send the rows so far as a part of the answer. The owner then expects another part. */
static void send_part(struct text *out) {
    append_format(out, "], \"more\": true}");
    if (reply(sandbox.owner, out, NULL, 0)) _exit(0);
    out->length = 0;
    append_format(out, "{\"ok\": true, \"rows\": [");
}

void end_rows(struct rows *rows) {
    bool truncated = rows->truncated || rows->ends_truncated;
    append_format(rows->out, "], \"truncated\": %s", truncated ? "true" : "false");
}

/* Return the bytes that one character takes in a Python string of this text. */
static size_t character_size(const char *text) {
    size_t size = 1;
    for (; *text && size < 4; text++) {
        unsigned char byte = (unsigned char)*text;
        size = byte >= 0xF0 ? 4 : byte >= 0x80 ? 2 : size;
    }
    return size;
}

/* Return whether a row that begins at `start` of the answer fits into the listing. If not, remove
   it; the listing is then truncated. */
static bool charge_row(struct rows *rows, size_t start, const char *path, const char *target) {
    size_t size = character_size(path), target_size = character_size(target);
    size_t length = rows->out->length - start;
    rows->space -= (long long)(ROW_PRICE + length * (size > target_size ? size : target_size));
    if (rows->space >= 0) return true;
    rows->truncated = true;
    rows->out->length = start;
    return false;
}

/* Add a row. `path` has no leading slash. `info` is NULL for a deleted path. */
void add_row(struct rows *rows, const char *path, const char *kind, const struct metadata *info,
             const char *digest, const char *target) {
    struct text *out = rows->out;
    size_t start = out->length;
    if (rows->truncated) return;
    if (out->bytes[start - 1] != '[') append(out, ",", 1);
    if (rows->paths_only) {
        append_json_path(out, path);
    } else {
        append(out, "[", 1);
        append_json_path(out, path);
        append_format(out, ",\"%s\",%u,%lld,\"%s\",", kind, info ? info->mode & 07777 : 0,
                      info && !strcmp(kind, "file") ? info->size : 0, digest);
        append_json_string(out, target);
        append_format(out, ",%s]", info && info->new ? "true" : "false");
    }
    if (!charge_row(rows, start, path, rows->paths_only ? "" : target)) return;
    rows->count++;
    if (out->length > PART) send_part(out);
}

/* Take back all rows from a number on: the owner drops them when it reads the number. */
void take_back_rows(struct rows *rows, size_t from) {
    if (rows->count == from) return;
    const char *comma = rows->out->bytes[rows->out->length - 1] == '[' ? "" : ",";
    append_format(rows->out, "%s%zu", comma, from);
    rows->count = from;
}

static bool charge(struct rows *rows, long long bytes) {
    long long *budget = bytes <= rows->budget ? &rows->budget : &rows->small_budget;
    if (bytes > *budget || (budget == &rows->small_budget && bytes > SMALL)) return false;
    *budget -= bytes;
    return true;
}

/* Count the parts of zeros with which a file begins. Holes are not read. */
static size_t count_zero_parts(int file, long long size) {
    static const unsigned char zeros[1 << 14];
    unsigned char data[sizeof zeros];
    size_t most = (size_t)size / ZERO_PART;
    off_t limit = (off_t)((most < MOST_ZERO_PARTS ? most : MOST_ZERO_PARTS) * ZERO_PART), at = 0;
    while (at < limit) {
        off_t next = lseek(file, at, SEEK_DATA);
        if (next < 0) next = errno == ENXIO ? limit : at;
        if (next > at) {
            at = next < limit ? next / (off_t)sizeof data * (off_t)sizeof data : limit;
            if (at == limit) break;
        }
        if (pread(file, data, sizeof data, at) != (ssize_t)sizeof data) break;
        if (memcmp(data, zeros, sizeof data)) break;
        at += (off_t)sizeof data;
    }
    return (size_t)at / ZERO_PART;
}

/* Compute the SHA-256 of an open file of this size, and close it. If the budget does not suffice,
   write its size instead. Zeros at its beginning cost nothing, whether it has them or a hole, so
   that the result depends on the content alone. */
int hash_file(struct rows *rows, int file, long long size, char hex[80]) {
    unsigned char data[1 << 14];
    struct sha256 sha;
    if (file < 0) return -1;
    bool may_fit = size <= BUDGET + (long long)(MOST_ZERO_PARTS * ZERO_PART);
    size_t parts = may_fit && size >= (long long)ZERO_PART ? count_zero_parts(file, size) : 0;
    long long left = size - (long long)(parts * ZERO_PART);
    if (!charge(rows, left)) {
        close(file);
        snprintf(hex, 80, UNREAD ":%lld", size);
        return 0;
    }
    sha256_begin_after_zeros(&sha, parts);
    if (parts) lseek(file, size - left, SEEK_SET);
    ssize_t got = 0;
    for (; left > 0; left -= got) {
        got = read(file, data, left < (long long)sizeof data ? (size_t)left : sizeof data);
        if (got <= 0) break;
        sha256_add(&sha, data, (size_t)got);
    }
    int code = errno;
    close(file);
    errno = code;
    sha256_end(&sha, hex);
    return got < 0 ? -1 : 0;
}

bool is_unread(const char *digest) {
    return !strncmp(digest, UNREAD, strlen(UNREAD));
}

void append_json_path(struct text *out, const char *path) {
    append(out, "\"/", 2);
    append_json_text(out, path);
    append(out, "\"", 1);
}
