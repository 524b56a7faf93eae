import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'

import { type Release, runTool } from './release.ts'

const units = {
  'flotilla-controller': 'a controller of a cluster',
  'flotilla-router': 'an edge router',
  'flotilla-tunnel': 'a tunnel of an enrolled identity',
} as const
const scripts = ['postinst', 'prerm', 'postrm'] as const

interface Content {
  readonly name: string
  readonly architecture: string
  readonly depends: readonly string[]
  readonly summary: string
  readonly description: string
  /** Base name of the package's maintainer scripts in deploy/debian. */
  readonly scripts: string
  readonly unit?: string
}

/**
 * Builds the Debian package with the program of one version. The package name contains the version,
 * so that the previous program stays installed until every process that runs it was restarted.
 */
export function buildProgramPackage(release: Release, tree: string, architecture: string): void {
  const content = {
    name: programPackage(release),
    architecture,
    depends: ['libc6 (>= 2.31)', 'libstdc++6'],
    summary: `Program of Flotilla ${release.version}`,
    description: 'Controller, router, tunnel, command line and console, with their Node.',
    scripts: 'program',
  }
  build(release, content, (stage) => {
    const to = join(stage, 'opt/flotilla', basename(tree))
    mkdirSync(dirname(to), { recursive: true })
    renameSync(tree, to)
  })
}

/** Builds the package that selects the version to run, and one package for each systemd unit. */
export function buildCommonPackages(release: Release): void {
  const systemd = join(release.program, 'deploy/systemd')
  const common = {
    name: 'flotilla',
    architecture: 'all',
    depends: [`${programPackage(release)} (= ${debianVersion(release)})`],
    summary: 'Control plane of a zero-trust overlay network',
    description: 'The command line, and the version that the units start.',
    scripts: 'flotilla',
  }
  build(release, common, (stage) => {
    place(join(systemd, 'flotilla.sysusers.conf'), join(stage, 'usr/lib/sysusers.d/flotilla.conf'))
    place(join(systemd, 'flotilla.tmpfiles.conf'), join(stage, 'usr/lib/tmpfiles.d/flotilla.conf'))
    mkdirSync(join(stage, 'usr/bin'), { recursive: true })
    symlinkSync('/opt/flotilla/bin/flotilla', join(stage, 'usr/bin/flotilla'))
  })
  for (const [name, what] of Object.entries(units)) {
    const content = {
      name,
      architecture: 'all',
      depends: [`flotilla (= ${debianVersion(release)})`, 'systemd'],
      summary: `Unit of Flotilla for ${what}`,
      description: `The unit ${name}@NAME runs ${what} with the files of /etc/flotilla/NAME.`,
      scripts: 'unit',
      unit: name,
    }
    build(release, content, (stage) => {
      const unit = `${name}@.service`
      place(join(systemd, unit), join(stage, 'usr/lib/systemd/system', unit))
    })
  }
}

const programPackage = ({ version }: Release): string => `flotilla-program-${version}`

/**
 * The version in Debian's form. Debian sorts `~` before everything else, so a pre-release sorts
 * before its release.
 */
const debianVersion = ({ version }: Release): string => version.replace('-', '~')

function place(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  copyFileSync(from, to)
  chmodSync(to, 0o644)
}

function build(release: Release, content: Content, fill: (stage: string) => void): void {
  const { out, work, program, version, timeS, level } = release
  const stage = join(work, 'stage')
  rmSync(stage, { recursive: true, force: true })
  mkdirSync(join(stage, 'DEBIAN'), { recursive: true })
  fill(stage)
  place(join(program, 'LICENSE'), join(stage, 'usr/share/doc', content.name, 'copyright'))
  for (const script of scripts) {
    const text = textOfScript(join(program, 'deploy/debian', `${content.scripts}.${script}`))
    if (text === null) continue
    const filled = text.replaceAll('@VERSION@', version).replaceAll('@UNIT@', content.unit ?? '')
    writeFileSync(join(stage, 'DEBIAN', script), filled, { mode: 0o755 })
  }
  // Makes the permissions independent of the umask.
  runTool('chmod', ['-R', 'u=rwX,go=rX', stage])
  writeFileSync(join(stage, 'DEBIAN/control'), control(release, content, installedKib(stage)))
  const file = `${content.name}_${debianVersion(release)}_${content.architecture}.deb`
  const packing = ['--root-owner-group', '-Zxz', `-z${level}`]
  runTool('dpkg-deb', [...packing, '--build', stage, join(out, file)], timeS)
}

function textOfScript(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

function installedKib(stage: string): number {
  return Number(runTool('du', ['--summarize', '--apparent-size', '-k', stage]).split('\t')[0])
}

function control(release: Release, content: Content, kib: number): string {
  const fields = {
    Package: content.name,
    Version: debianVersion(release),
    Architecture: content.architecture,
    Maintainer: 'Flotilla <flotilla@localhost>',
    'Installed-Size': `${kib}`,
    Depends: content.depends.join(', '),
    Section: 'net',
    Priority: 'optional',
    Description: `${content.summary}\n ${content.description}`,
  }
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('')
}
