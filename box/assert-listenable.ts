import { tryToListen } from '../runtime/net/try-to-listen.ts'
import { BoxError } from './box-error.ts'

/**
 * Whether an address can be listened on, asked before anything is started: a start that fails later would have to undo.
 * Port 0 asks for the address alone.
 * @throws BoxError naming the variable to change
 */
export const assertListenable = async (
  variable: string,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> => {
  const error = await tryToListen({ host, port })
  if (error === undefined) return
  const place = port === 0 ? host : `${host}:${port}`
  const says: Readonly<Record<string, string>> = {
    EADDRINUSE: `the port is in use; free it or set ${variable}`,
    EADDRNOTAVAIL: `it is no address of this machine; set ${variable}`,
  }
  const why = says[error.code ?? ''] ?? `${error.message}; set ${variable}`
  throw new BoxError(`Cannot listen on ${place}: ${why}`, { cause: error })
}
