import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Scanner;
import java.util.TreeSet;

public class Main {
    public static void main(String[] arguments) {
        Map<String, TreeSet<String>> groups = new HashMap<>();
        var input = new Scanner(System.in);
        while (input.hasNext()) {
            String word = input.next().toLowerCase();
            char[] letters = word.toCharArray();
            Arrays.sort(letters);
            groups.computeIfAbsent(new String(letters), key -> new TreeSet<>()).add(word);
        }
        groups.values().stream()
            .filter(group -> group.size() > 1)
            .map(group -> String.join(" ", group))
            .sorted()
            .forEach(System.out::println);
    }
}
