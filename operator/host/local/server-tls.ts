/** The private authority of a single box and the one certificate that its environments' servers share. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { writeFileDurably } from '../../../runtime/files/durable-file.ts'
import { readableBy } from '../../../runtime/postgres/config-files.ts'
import type { RunAs } from '../../../runtime/postgres/run-as.ts'
import { makeAuthority, makeServerIdentity } from '../../../runtime/tls/certificate.ts'
import { hostFolders } from './folders.ts'

const CA_FILE = 'ca.crt'
const DAY_MS = 86_400_000
const AUTHORITY_DAYS = 20 * 365
const SERVER_DAYS = 397
/** Renewed when fewer days are left. */
const RENEW_DAYS = 60

export interface TlsOptions {
  /** Where certificates go; Postgres' account reads the server's files there. */
  readonly folder: string
  /** A folder closed to everybody else: it gets the authority's key. */
  readonly secretsFolder: string
  readonly account: RunAs | undefined
  /** The name or address that clients connect to. */
  readonly host: string
}

export interface ServerTls {
  readonly certificateFile: string
  readonly keyFile: string
  /** PEM of the authority, for clients' sslrootcert. */
  readonly caCertificate: string
}

/** Where the authority's certificate is, for clients on this machine: any account can read it. */
export const caCertificateFile = (home: string): string => join(hostFolders(home).tls, CA_FILE)

/** Whether an address is this machine's own alone. */
export const isLoopback = (address: string): boolean =>
  address === '::1' || (isIP(address) === 4 && address.startsWith('127.'))

/**
 * Makes what is missing, and the server's certificate anew when it ends soon or is for another name.
 * @returns the files, and whether servers have to read them again
 */
export const ensureServerTls = async (
  options: TlsOptions,
  now: Date,
): Promise<ServerTls & { readonly renewed: boolean }> => {
  const { folder, account, host } = options
  await mkdir(folder, { recursive: true, mode: 0o711 })
  const authority = await ensureAuthority(options, now)
  const files = { certificateFile: join(folder, 'server.crt'), keyFile: join(folder, 'server.key') }
  const hosts = [...new Set([host, 'localhost', '127.0.0.1', '::1'])]
  const renewed = !(await isGood(files, authority.certificate, host, now))
  if (renewed) {
    const identity = makeServerIdentity(authority, hosts, SERVER_DAYS, now)
    // The key first: a crash between the two leaves a pair that does not fit, which the next look finds.
    await writeFileDurably(files.keyFile, identity.key, readableBy(account))
    await writeFileDurably(files.certificateFile, identity.certificate, { mode: 0o644 })
  }
  return { ...files, caCertificate: authority.certificate.toString(), renewed }
}

const ensureAuthority = async ({ folder, secretsFolder, host }: TlsOptions, now: Date) => {
  const certificateFile = join(folder, CA_FILE)
  const keyFile = join(secretsFolder, 'postgres-ca.key')
  if (!existsSync(certificateFile) || !existsSync(keyFile)) {
    await mkdir(secretsFolder, { recursive: true, mode: 0o700 })
    const made = makeAuthority(`Postgres at ${host}`.slice(0, 64), AUTHORITY_DAYS, now)
    await writeFileDurably(keyFile, made.key, { mode: 0o600 })
    await writeFileDurably(certificateFile, made.certificate, { mode: 0o644 })
  }
  const certificate = new X509Certificate(await readFile(certificateFile))
  const key = createPrivateKey(await readFile(keyFile))
  if (!certificate.checkPrivateKey(key))
    throw new Error(`Cannot use ${certificateFile}: ${keyFile} belongs to another authority; restore both together`)
  return { certificate, key }
}

const isGood = async (
  files: { certificateFile: string; keyFile: string },
  authority: X509Certificate,
  host: string,
  now: Date,
): Promise<boolean> => {
  try {
    const certificate = new X509Certificate(await readFile(files.certificateFile))
    const named = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)
    return (
      named !== undefined &&
      certificate.checkPrivateKey(createPrivateKey(await readFile(files.keyFile))) &&
      certificate.verify(authority.publicKey) &&
      Date.parse(certificate.validTo) - now.getTime() > RENEW_DAYS * DAY_MS
    )
  } catch {
    return false
  }
}
