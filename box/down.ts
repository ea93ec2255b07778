/** `make down`: stops the control plane and every database of SERVICE_HOME, also when the control plane is dead. */
import { existsSync } from 'node:fs'
import { boxConfig } from './config/config.ts'
import { processEnvironment } from './config/env.ts'
import { lineProgress } from './progress.ts'
import { runCommand } from './run-command.ts'
import { stopEverything } from './stop-everything.ts'

await runCommand(async () => {
  const { home } = boxConfig(processEnvironment())
  if (!existsSync(home)) {
    console.log(`Nothing runs on ${home}: there is no such folder`)
    return
  }
  const lock = await stopEverything(home, lineProgress(console.log))
  lock.release()
  console.log(`Stopped everything on ${home}`)
})
