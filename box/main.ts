/** The single box under a service manager: in the foreground, its log on standard output, no secret printed. */
import { boxConfig } from './config/config.ts'
import { processEnvironment } from './config/env.ts'
import { noProgress } from './progress.ts'
import { runBox } from './run-box.ts'
import { runCommand } from './run-command.ts'

await runCommand(async () => {
  const environment = processEnvironment()
  await runBox({
    config: boxConfig(environment),
    environment,
    progress: noProgress,
    logFile: false,
    showSecrets: false,
    print: line => console.error(line),
    onReady: () => undefined,
    stopHint: 'SIGTERM',
  })
})
