#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char word[80];
    int old, new;
    while (scanf("%79s %d %d", word, &old, &new) == 3) {
        unsigned long long value = strtoull(word, NULL, old);
        char digits[65];
        int count = 0;
        do {
            digits[count++] = "0123456789abcdefghijklmnopqrstuvwxyz"[value % new];
            value /= new;
        } while (value);
        while (count) putchar(digits[--count]);
        putchar('\n');
    }
    return 0;
}
