cd /repo || exit
printf '[core]\nrepositoryformatversion = 0\n' > .git/config   # a copy: nothing of the agent's
rm -rf .git/hooks .git/info                                     # own is to run in here
git fsck --no-dangling > /dev/null 2>&1 && echo "sound"
echo "on $(git symbolic-ref HEAD 2>&1)"
echo "left over: $(git status --porcelain 2>&1)"
git for-each-ref refs/heads refs/tags --format='%(refname)' | while read -r name; do
  echo "$name: $(git log --format=%T "$name" | tr '\n' ' ')"   # the files of each commit, as hashes
done
