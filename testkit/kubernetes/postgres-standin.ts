/**
 * What a Postgres is to the operator, without one: TLS with the certificate of its Secret, the superuser by a client certificate,
 * the other roles by SCRAM with the verifier that they were given, and the few statements that the operator makes. Thousands of
 * them cost nothing. A statement that nobody foresaw is an error, and is told.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual, X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { type Column, say, stringsOf, type WireMessage, WireReader } from './postgres-wire.ts'

/** The files of a server. */
export interface StandinFiles {
  readonly certificate: string
  readonly key: string
  readonly authorities: string
  /** postgresql.conf. */
  readonly settings: string
}

/** What a server keeps. */
export class StandinServer {
  /** Of roles, where one was set. */
  readonly verifiers = new Map<string, string>()
  readonly connectionLimits = new Map<string, number>()
  /** As they were last read. */
  files: StandinFiles
  readonly readFiles: () => Promise<StandinFiles>
  /** How often the superuser signed in. */
  superuserSessions = 0
  /** Statements that it did not understand. */
  readonly strange: string[] = []

  private constructor(files: StandinFiles, readFiles: () => Promise<StandinFiles>) {
    this.files = files
    this.readFiles = readFiles
  }

  static async start(readFiles: () => Promise<StandinFiles>): Promise<StandinServer> {
    return new StandinServer(await readFiles(), readFiles)
  }

  /** Serves a connection to its end. */
  serve(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    const reader = new WireReader()
    socket.once('data', chunk => {
      const [first] = reader.read(chunk)
      if (first?.body.readInt32BE(0) !== SSL_REQUEST) {
        // As the image's pg_hba.conf: nothing unencrypted.
        socket.end(say.error('28000', 'no pg_hba.conf entry for host, no encryption'))
        return
      }
      socket.write('S')
      const { certificate: cert, key, authorities: ca } = this.files
      const secure = new TLSSocket(socket, {
        isServer: true,
        cert,
        key,
        ca,
        requestCert: true,
        rejectUnauthorized: false,
      })
      secure.on('error', () => socket.destroy())
      new Session(this, secure)
    })
  }
}

const SSL_REQUEST = 80_877_103
const OPERATOR = 'svc-operator'

interface Rows {
  readonly tag: string
  readonly columns?: readonly Column[]
  readonly rows?: readonly (readonly (string | null)[])[]
}
type Statement = readonly [
  pattern: RegExp,
  run: (server: StandinServer, found: readonly string[]) => Rows | Promise<Rows>,
]

const ROLES = ['app', 'svc_ops']
const text = (name: string): Column => ({ name, type: 'text' })
const done = (tag: string): Rows => ({ tag })

const STATEMENTS: readonly Statement[] = [
  [
    /^select current_setting\('([^']+)', true\) as files, rolconnlimit as "limit" from pg_roles/,
    ({ files, connectionLimits }, [setting = '']) => ({
      tag: 'SELECT 1',
      columns: [text('files'), { name: 'limit', type: 'int4' }],
      rows: [[settingIn(files.settings, setting), String(connectionLimits.get('app') ?? -1)]],
    }),
  ],
  [
    /^select rolname, rolpassword from pg_authid/,
    ({ verifiers }) => ({
      tag: `SELECT ${ROLES.length}`,
      columns: [text('rolname'), text('rolpassword')],
      rows: ROLES.map(role => [role, verifiers.get(role) ?? null]),
    }),
  ],
  [
    /^alter role (\w+) password '(SCRAM-SHA-256\$[^']+)'/,
    ({ verifiers }, [role = '', verifier = '']) => {
      verifiers.set(role, verifier)
      return done('ALTER ROLE')
    },
  ],
  [
    /^alter role (\w+) connection limit (\d+)/,
    ({ connectionLimits }, [role = '', limit]) => {
      connectionLimits.set(role, Number(limit))
      return done('ALTER ROLE')
    },
  ],
  [
    /^select pg_reload_conf\(\)/,
    async server => {
      server.files = await server.readFiles()
      return { tag: 'SELECT 1', columns: [text('pg_reload_conf')], rows: [['t']] }
    },
  ],
  [/^copy \(select\) to program 'df /, () => done('COPY 1')],
  [
    /^select pg_read_file\('[^']*'\) as answer/,
    () => ({ tag: 'SELECT 1', columns: [text('answer')], rows: [['Avail Size\n900000000 1000000000\n']] }),
  ],
  [/^checkpoint/, () => done('CHECKPOINT')],
  [/^select 1/, () => ({ tag: 'SELECT 1', columns: [{ name: '?column?', type: 'int4' }], rows: [['1']] })],
]

const settingIn = (settings: string, name: string): string | null =>
  new RegExp(`^${name.replaceAll('.', '\\.')}\\s*=\\s*'?([^'\\n]*)'?`, 'm').exec(settings)?.[1] ?? null

/** One connection, from its startup message on. */
class Session {
  readonly #server: StandinServer
  readonly #socket: TLSSocket
  readonly #reader = new WireReader()
  #proof: ((message: WireMessage) => void) | undefined
  #statement = ''
  #busy: Promise<void> = Promise.resolve()

  constructor(server: StandinServer, socket: TLSSocket) {
    this.#server = server
    this.#socket = socket
    socket.on('data', chunk => {
      for (const message of this.#reader.read(chunk)) {
        this.#reader.untyped = false
        this.#busy = this.#busy.then(() => this.#take(message)).catch(() => void socket.destroy())
      }
    })
  }

  async #take(message: WireMessage): Promise<void> {
    const { type, body } = message
    if (type === '') this.#begin(stringsOf(body.subarray(4)))
    else if (type === 'p') this.#proof?.(message)
    else if (type === 'X') this.#socket.end()
    else if (type === 'Q') {
      await this.#answer(stringsOf(body)[0] ?? '', true)
      this.#say(say.ready())
    } else if (type === 'P') {
      this.#statement = stringsOf(body)[1] ?? ''
      this.#say(say.parsed())
    } else if (type === 'B') this.#say(say.bound())
    else if (type === 'E') await this.#answer(this.#statement, true)
    else if (type === 'C') this.#say(say.closed())
    else if (type === 'S') this.#say(say.ready())
  }

  #say(...messages: Buffer[]): void {
    if (this.#socket.writable) this.#socket.write(Buffer.concat(messages))
  }

  #refuse(code: string, why: string): void {
    this.#socket.end(say.error(code, why))
  }

  #begin(parameters: readonly string[]): void {
    const of = (name: string): string => parameters[parameters.indexOf(name) + 1] ?? ''
    const user = of('user')
    if (user === 'postgres') {
      if (this.#isOperator()) {
        this.#server.superuserSessions++
        this.#welcome()
      } else this.#refuse('28000', 'certificate authentication failed for user "postgres"')
      return
    }
    const verifier = of('database') === 'app' ? this.#server.verifiers.get(user) : undefined
    if (verifier === undefined) this.#refuse('28P01', `password authentication failed for user "${user}"`)
    else this.#askForProof(user, verifier)
  }

  #isOperator(): boolean {
    const { raw } = this.#socket.getPeerCertificate() as { raw?: Buffer } // none: an empty object
    if (raw === undefined) return false
    const certificate = new X509Certificate(raw)
    const authorities = this.#server.files.authorities.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []
    const signed = authorities.some(pem => certificate.verify(new X509Certificate(pem).publicKey))
    return signed && certificate.subject === `CN=${OPERATOR}`
  }

  #welcome(): void {
    this.#say(say.authentication(0), say.parameter('server_version', '17.0'), say.ready())
  }

  /** SCRAM-SHA-256, RFC 5802: proves the client by its verifier, and itself to the client. */
  #askForProof(user: string, verifier: string): void {
    const [, iterations = '', salt = '', storedKey = '', serverKey = ''] =
      /^SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):(.+)$/.exec(verifier) ?? []
    this.#say(say.authentication(10, 'SCRAM-SHA-256\0'))
    this.#proof = ({ body }) => {
      const clientFirst = body.subarray(body.indexOf(0) + 5).toString()
      const clientFirstBare = clientFirst.slice(clientFirst.indexOf('n='))
      const nonce = `${/r=([^,]+)/.exec(clientFirst)?.[1] ?? ''}${randomBytes(18).toString('base64')}`
      const serverFirst = `r=${nonce},s=${salt},i=${iterations}`
      this.#say(say.authentication(11, Buffer.from(serverFirst)))
      this.#proof = final => {
        const clientFinal = final.body.toString()
        const at = clientFinal.lastIndexOf(',p=')
        const exchange = [clientFirstBare, serverFirst, clientFinal.slice(0, at)].join(',')
        const sign = (key: string): Buffer => createHmac('sha256', Buffer.from(key, 'base64')).update(exchange).digest()
        const signature = sign(storedKey)
        const clientKey = Buffer.from(clientFinal.slice(at + 3), 'base64').map((byte, i) => byte ^ signature[i]!)
        const known = Buffer.from(storedKey, 'base64')
        if (!timingSafeEqual(createHash('sha256').update(clientKey).digest(), known)) {
          this.#refuse('28P01', `password authentication failed for user "${user}"`)
          return
        }
        this.#say(say.authentication(12, Buffer.from(`v=${sign(serverKey).toString('base64')}`)))
        this.#welcome()
      }
    }
  }

  async #answer(statement: string, described: boolean): Promise<void> {
    for (const [pattern, run] of STATEMENTS) {
      const found = pattern.exec(statement.trim())
      if (found === null) continue
      const { tag, columns, rows = [] } = await run(this.#server, found.slice(1))
      if (described && columns !== undefined) this.#say(say.columns(columns))
      this.#say(...rows.map(say.row), say.complete(tag))
      return
    }
    this.#server.strange.push(statement)
    this.#say(say.error('0A000', `the stand-in does not know: ${statement}`))
  }
}
