# SPDX-License-Identifier: Apache-2.0
# What a release says of itself: its version in all places, and its commit.

# copied: the sources without a repository, in ./sources
copied() {
  mkdir -p sources/.ci
  cp "$top/.ci/commit" sources/.ci/
}

test_one_version() {
  local version
  version=$("$heaptap" --version | cut -d ' ' -f 2)
  equal "$version" "$(sed -n 's/^heaptap (\(.*\)) .*/\1/p;q' "$top/debian/changelog")" 'version in debian/changelog'
  equal "$version" "$(sed -n 's/^## \([0-9.]*\).*/\1/p' "$top/CHANGELOG.md" | head -n 1)" 'newest version in CHANGELOG.md'
}

# An archive of git's, a copy that is told, and a folder that knows nothing but lies in another repository.
test_commit_of_the_sources() {
  local head
  copied
  equal '' "$(sources/.ci/commit)" 'commit of a copy'
  equal 0123456789ab "$(HEAPTAP_COMMIT=0123456789ab sources/.ci/commit)"
  git init -q .
  git -c user.name=a -c user.email=a@b commit -q --allow-empty -m outer
  equal '' "$(sources/.ci/commit)" 'commit of a copy within another repository'
  cp "$top/.gitattributes" sources/
  git -C sources init -q .
  git -C sources add -A
  git -C sources -c user.name=a -c user.email=a@b commit -q -m inner
  head=$(git -C sources rev-parse HEAD | cut -c 1-12)
  equal "$head" "$(sources/.ci/commit)"
  echo >>sources/.ci/commit
  equal "$head, changed" "$(sources/.ci/commit)" 'commit of a checkout that differs'
  mkdir archived
  git -C sources archive HEAD | tar -x -C archived
  equal "$head" "$(archived/.ci/commit)" 'commit of an archive'
}
