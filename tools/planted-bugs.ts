/**
 * `node tools/planted-bugs.ts [WORDS]`: plants every bug of tools/planted-bugs (or those whose name has WORDS in it, or whose model
 * is called so) in a copy of the tree, one at a time, and runs the tests of authorization against it, or its model. Fails when fewer than
 * 95 % are caught.
 */
import { BUGS } from './planted-bugs/bugs.ts'
import { MODEL_BUGS } from './planted-bugs/model-bugs.ts'
import { type Hunt, huntAll } from './planted-bugs/plant.ts'

const AT_ONCE = 2
const NEEDED = 0.95

const words = process.argv.slice(2).join(' ')
const ofModel = MODEL_BUGS.filter(({ model }) => model === words)
const bugs = ofModel.length > 0 ? ofModel : [...BUGS, ...MODEL_BUGS].filter(({ what }) => what.includes(words))
const tell = ({ bug, caughtBy, seconds }: Hunt): void =>
  console.log(
    `${caughtBy === undefined ? 'MISSED' : 'caught'} ${seconds.toFixed(0).padStart(4)} s  ${bug.what}  (${bug.file})\n               ${caughtBy ?? ''}`,
  )
const hunts = await huntAll(bugs, AT_ONCE, tell)
const caught = hunts.filter(({ caughtBy }) => caughtBy !== undefined).length
console.log(`\n${caught} of ${bugs.length} planted bugs caught`)
process.exitCode = bugs.length > 0 && caught >= NEEDED * bugs.length ? 0 : 1
