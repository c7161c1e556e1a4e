#include <stdio.h>
#include <string.h>

int main(void) {
    static char line[10004], waiting[10004];
    while (fgets(line, sizeof line, stdin)) {
        int depth = 0, deepest = 0, wrong = 0;
        for (int i = 0; line[i] && line[i] != '\n'; i++) {
            char sign = line[i];
            if (strchr("([{", sign)) {
                waiting[depth++] = sign == '(' ? ')' : sign == '[' ? ']' : '}';
                if (depth > deepest) deepest = depth;
            } else if (strchr(")]}", sign) && (depth == 0 || waiting[--depth] != sign)) {
                wrong = i + 1;
                break;
            }
        }
        if (wrong) printf("wrong at %d\n", wrong);
        else if (depth) printf("%d open\n", depth);
        else printf("%d\n", deepest);
    }
    return 0;
}
