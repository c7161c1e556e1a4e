import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

public class Main {
    public static void main(String[] arguments) {
        Map<String, Set<String>> needs = new TreeMap<>();
        var input = new Scanner(System.in);
        while (input.hasNextLine()) {
            String[] parts = input.nextLine().split(":", 2);
            var wanted = needs.computeIfAbsent(parts[0].trim(), key -> new TreeSet<>());
            for (String name : parts[1].trim().split("\\s+")) {
                if (name.isEmpty()) continue;
                wanted.add(name);
                needs.computeIfAbsent(name, key -> new TreeSet<>());
            }
        }
        List<String> done = new ArrayList<>();
        while (!needs.isEmpty()) {
            String free = null;
            for (var entry : needs.entrySet()) {
                if (done.containsAll(entry.getValue())) {
                    free = entry.getKey();
                    break;
                }
            }
            if (free == null) {
                System.out.println("circle");
                return;
            }
            needs.remove(free);
            done.add(free);
        }
        done.forEach(System.out::println);
    }
}
