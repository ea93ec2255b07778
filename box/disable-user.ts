/** `make disable-user EMAIL=…`, and with ENABLE=1 back: an account signs in no more and none of its tokens works; a running control plane or not. */
import { disabledLine, disableUser } from '../apiserver/commands/disable-user.ts'
import { Database } from '../apiserver/store/database.ts'
import { DomainError } from '../lib/errors/domain-error.ts'
import { silentLog } from '../runtime/log/log.ts'
import { BoxError } from './box-error.ts'
import { boxConfig } from './config/config.ts'
import { processEnvironment } from './config/env.ts'
import { runCommand } from './run-command.ts'
import { withServingDatabase } from './with-serving-database.ts'

await runCommand(async () => {
  const config = boxConfig(processEnvironment())
  const { email: who, enable } = config
  if (who === undefined) throw new BoxError('Say whom to disable: make disable-user EMAIL=ada@example.com')
  await withServingDatabase(config, async url => {
    const database = new Database({ url, log: silentLog, maxConnections: 1 })
    const input = { who, disabled: !enable }
    try {
      console.log(disabledLine(input, await disableUser(database, input)))
    } catch (error) {
      if (error instanceof DomainError) throw new BoxError(`Cannot disable or enable "${who}": ${error.message}`)
      throw error
    } finally {
      await database.stop()
    }
  })
})
