#!/bin/sh
# Removes what nothing runs: types, source maps, TypeScript sources, documents, the Node package (its program is elsewhere).
# Licences stay.
set -eu
cd "$1"
rm -rf .package-lock.json .bin @types node-linux-* bare-* ./*/*/node_modules/@types
find . -type f \( -name '*.ts' -o -name '*.cts' -o -name '*.mts' -o -name '*.map' -o -name '*.flow' -o -iname '*.md' -o -name '*.tsbuildinfo' \) \
  ! -iname 'licen[sc]e*' ! -iname 'notice*' -delete
find . -type d \( -name test -o -name tests -o -name docs -o -name benchmark -o -name benchmarks -o -name '.github' \) -prune -exec rm -rf {} +
# Of the reference page two files are served.
find swagger-ui-dist -type f ! -name package.json ! -name swagger-ui.css ! -name 'swagger-ui-bundle.js*' ! -name LICENSE ! -name NOTICE -delete
find . -type d -empty -delete
