import { createServer } from 'node:net'
import { BoxError } from './box-error.ts'

/**
 * Whether an address can be listened on, asked before anything is started: a start that fails later would have to undo.
 * @throws BoxError naming the variable to change
 */
export const assertListenable = (variable: string, { host, port }: { host: string; port: number }): Promise<void> =>
  new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', error => {
      const code = 'code' in error ? error.code : undefined
      const why = code === 'EADDRINUSE' ? 'the port is in use' : error.message
      reject(new BoxError(`Cannot listen on ${host}:${port}: ${why}; free it or set ${variable}`, { cause: error }))
    })
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()))
  })
