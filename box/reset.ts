/** `make reset`: deletes a home with every database in it, after asking. */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { BoxError } from './box-error.ts'
import { boxConfig } from './config/config.ts'
import { processEnvironment } from './config/env.ts'
import { describeHome } from './home-folder.ts'
import { lineProgress } from './progress.ts'
import { runCommand } from './run-command.ts'
import { stopEverything } from './stop-everything.ts'

const ask = async (question: string): Promise<string> => {
  const lines = createInterface({ input: process.stdin })
  process.stdout.write(question)
  try {
    for await (const line of lines) return line.trim()
    return ''
  } finally {
    lines.close()
  }
}

/** Everything inside, then the folder itself, which may be a mount point and stay. */
const removeFolder = (folder: string): void => {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
  try {
    rmSync(folder, { recursive: true })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EBUSY')) throw error
  }
}

await runCommand(async () => {
  const { home } = boxConfig(processEnvironment())
  if (!existsSync(join(home, 'layout.json'))) throw new BoxError(`Nothing to delete: ${home} is not a home of ours`)
  const { root, dataRoot } = describeHome(home)
  const where = dataRoot === root ? root : `${root} and ${dataRoot}`
  const answer = await ask(`This deletes every database in ${where}, kept ones too, for good. Type yes to go on: `)
  if (answer !== 'yes') throw new BoxError('Nothing was deleted')
  const lock = await stopEverything(home, lineProgress(console.log))
  if (dataRoot !== root) removeFolder(dataRoot)
  removeFolder(root)
  lock.release()
  console.log(`Deleted ${where}`)
})
