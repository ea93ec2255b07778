/**
 * `node tools/lanes.ts FILES… [-- FILES…]…`: each FILES (names with blanks between) is a mocha of its own, a lane. Those of a
 * phase run beside each other, four at a time; `--` begins the next phase. What the first lane of a phase says is shown as it
 * comes, what the others say when all have ended, in their order. The last line is the sum: `N passed, N failed[, N skipped]`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

const AT_ONCE = 4
const SUM = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm

const phases: string[][] = [[]]
for (const argument of process.argv.slice(2)) {
  if (argument === '--') phases.push([])
  else phases.at(-1)?.push(argument)
}

/** Not through a shell in the background, whose children would ignore Ctrl-C, and whoever they start too. */
const runMocha = async (files: string, isShown: boolean): Promise<string> => {
  const mocha = spawn('mocha', files.split(' ').filter(Boolean), { stdio: ['ignore', 'pipe', 'pipe'] })
  let words = ''
  for (const [stream, shown] of [
    [mocha.stdout, process.stdout],
    [mocha.stderr, process.stderr],
  ] as const)
    stream.setEncoding('utf8').on('data', (piece: string) => {
      words += piece
      if (isShown) shown.write(piece)
    })
  await once(mocha, 'close')
  return words
}

const runPhase = async (lanes: readonly string[]): Promise<string[]> => {
  const said: string[] = []
  const waiting = [...lanes.entries()]
  const next = async (): Promise<void> => {
    for (let lane = waiting.shift(); lane !== undefined; lane = waiting.shift())
      said[lane[0]] = await runMocha(lane[1], lane[0] === 0)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  for (const words of said.slice(1)) process.stdout.write(words)
  return said
}

let [passed, failed, skipped] = [0, 0, 0]
for (const lanes of phases)
  for (const words of await runPhase(lanes)) {
    // One that ended without saying how has failed.
    const [, p, f, s] = [...words.matchAll(SUM)].at(-1) ?? [undefined, 0, 1]
    passed += Number(p)
    failed += Number(f)
    skipped += Number(s ?? 0)
  }
console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed === 0 ? 0 : 1
