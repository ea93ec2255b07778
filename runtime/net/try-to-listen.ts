import { createServer } from 'node:net'

/** Listens on an address for a moment: undefined when that works, else what the system says, e.g. EADDRINUSE. Port 0: any. */
export const tryToListen = (address: {
  readonly host: string
  readonly port: number
}): Promise<NodeJS.ErrnoException | undefined> =>
  new Promise(resolve => {
    const listener = createServer()
    listener.once('error', resolve)
    listener.listen({ ...address, exclusive: true }, () => listener.close(() => resolve(undefined)))
  })
