import { createServer } from 'node:net'

/** Below 32768, where outgoing connections take theirs, and clear of the product's own defaults. */
const FIRST = 21000
const LAST = 31000

const canListen = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })

/** Ports that follow each other and on which nobody listens on loopback right now; the first one of them. */
export const freePorts = async (count = 1): Promise<number> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const first = FIRST + Math.floor(Math.random() * (LAST - FIRST - count))
    const ports = Array.from({ length: count }, (_, index) => first + index)
    const free = await Promise.all(ports.map(canListen))
    if (free.every(Boolean)) return first
  }
  throw new Error(`Cannot find ${count} free ports in ${FIRST}-${LAST}`)
}
