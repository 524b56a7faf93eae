import { basename, dirname } from 'node:path'

import { type Release, runTool } from './release.ts'

/**
 * Writes a tar.xz archive that contains the folder. Everyone can read its files, and root owns
 * them.
 */
export function writeArchive({ timeS, level }: Release, tree: string, path: string): void {
  runTool('tar', [
    '--create',
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u=rwX,go=rX',
    `--mtime=@${timeS}`,
    `--use-compress-program=xz -${level} --threads=0`,
    `--file=${path}`,
    `--directory=${dirname(tree)}`,
    basename(tree),
  ])
}
