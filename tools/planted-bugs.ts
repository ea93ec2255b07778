/**
 * `node tools/planted-bugs.ts [WORDS]`: plants every bug of tools/planted-bugs/bugs.ts (or those whose name has WORDS in it) in
 * a copy of the tree, one at a time, and runs the tests of authorization against it. Fails when fewer than 95 % are caught.
 */
import { BUGS } from './planted-bugs/bugs.ts'
import { type Hunt, huntAll } from './planted-bugs/plant.ts'

const AT_ONCE = 2
const NEEDED = 0.95

const words = process.argv.slice(2).join(' ')
const bugs = BUGS.filter(({ what }) => what.includes(words))
const tell = ({ bug, caughtBy, seconds }: Hunt): void =>
  console.log(
    `${caughtBy === undefined ? 'MISSED' : 'caught'} ${seconds.toFixed(0).padStart(4)} s  ${bug.what}  (${bug.file})\n               ${caughtBy ?? ''}`,
  )
const hunts = await huntAll(bugs, AT_ONCE, tell)
const caught = hunts.filter(({ caughtBy }) => caughtBy !== undefined).length
console.log(`\n${caught} of ${bugs.length} planted bugs caught`)
process.exitCode = bugs.length > 0 && caught >= NEEDED * bugs.length ? 0 : 1
